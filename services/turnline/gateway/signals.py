"""What a gateway counts, times, traces and logs of sockets and their frames."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from turnline.errors import InternalError, TurnlineError
from turnline.frontdoor import Admitted
from turnline.protocol import TraceContext
from turnline.protocol.clock import Clock
from turnline.store import Gap
from turnline.telemetry import Metrics, Span, Tracing, get_logger, names

_log = get_logger("gateway")

_OK = 200
_CLIENT_LEFT = 499


@dataclass(slots=True)
class Answered:
    """How one frame was answered.  Not frozen: the status becomes known on the way."""

    status: int = _OK


class GatewaySignals:
    """The series and spans of one gateway.

    Attributes:
        surface: what its connections came over; a label.
    """

    def __init__(
        self, metrics: Metrics, tracing: Tracing, clock: Clock, *, surface: str = "websocket"
    ) -> None:
        self.surface = surface
        self._metrics = metrics
        self._tracing = tracing
        self._clock = clock
        self._connections = metrics.gauge(names.CONNECTIONS)
        self._slow = metrics.counter(names.FRAMES_PUSHED_TOTAL, result="slow")
        self._gaps = metrics.counter(names.STREAM_GAPS_TOTAL)

    @contextmanager
    def connection(self) -> Iterator["ConnectionEnd"]:
        """Count a socket for the length of the block, and log both its ends."""
        began = self._clock.monotonic()
        end = ConnectionEnd()
        self._connections.inc()
        _log.info("connection.opened")
        try:
            yield end
        finally:
            self._connections.dec()
            seconds = round(self._clock.monotonic() - began, 3)
            _log.info("connection.closed", code=end.code, reason=end.reason, seconds=seconds)

    def refused_socket(self, code: int, reason: str) -> None:
        """Log a socket that was not taken."""
        _log.info("connection.refused", code=code, reason=reason)

    def slow(self, connection_id: str, frames: int) -> None:
        """Count the frames a client did not read in time."""
        self._slow.inc(frames)
        _log.warning("connection.slow", connection_id=connection_id, queued=frames)

    def gap(self, request_id: str, gap: Gap) -> None:
        """Count a resume that was told of a gap."""
        self._gaps.inc()
        _log.warning("stream.gap", request_id=request_id, first=gap.first, last=gap.last)

    @contextmanager
    def frame(self, mode: str) -> Iterator[Answered]:
        """Time and count one client frame; an error that leaves the block gives the status."""
        began = self._clock.monotonic()
        answered = Answered()
        try:
            yield answered
        except TurnlineError as error:
            answered.status = error.meaning.http_status
            raise
        except asyncio.CancelledError:
            answered.status = _CLIENT_LEFT
            raise
        except Exception:
            answered.status = InternalError().meaning.http_status
            raise
        finally:
            self._count(mode, answered.status)
            self._metrics.histogram(names.REQUEST_SECONDS, surface=self.surface, mode=mode).observe(
                self._clock.monotonic() - began
            )

    def refused_frame(self, mode: str, error: TurnlineError) -> None:
        """Count a frame that could not be acted on."""
        self._count(mode, error.meaning.http_status)

    @contextmanager
    def request(self, mode: str, *, session_id: str, request_id: str) -> Iterator[Span]:
        """Span the admission of a turn; a socket's client brings no trace of its own."""
        ids = {"session_id": session_id, "request_id": request_id}
        with self._tracing.start_span(
            names.REQUEST, TraceContext(), surface=self.surface, mode=mode, **ids
        ) as span:
            yield span

    def admitted(self, turn: Admitted, mode: str) -> None:
        """Log a turn that is on its way."""
        _log.info(
            "turn.admitted",
            request_id=turn.request_id,
            session_id=turn.session_id,
            surface=self.surface,
            mode=mode,
        )

    def failed(self, mode: str, error: Exception) -> None:
        """Log a frame whose handling broke."""
        _log.error("request.failed", surface=self.surface, mode=mode, exc_info=error)

    def _count(self, mode: str, status: int) -> None:
        self._metrics.counter(
            names.REQUESTS_TOTAL, surface=self.surface, mode=mode, status=str(status)
        ).inc()


@dataclass(slots=True)
class ConnectionEnd:
    """Why a socket ended.  Not frozen: known at its end only.

    Attributes:
        code: WebSocket close code; 1006 when the connection broke.
    """

    code: int = 1006
    reason: str = ""
