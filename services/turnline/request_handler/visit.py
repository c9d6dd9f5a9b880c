"""One request on its way through a surface, and the signals it leaves: counts and times."""

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.types import Receive

from turnline.protocol.clock import Clock
from turnline.telemetry import Metrics, names


@dataclass(slots=True, kw_only=True)
class Visit:
    """One request.  Not frozen: what it turns out to be is filled in on the way.

    Attributes:
        began: when, by the monotonic clock.
        surface / mode: labels of its metrics.
        status: of the answer, an HTTP status on every surface; 500 until there is one.
    """

    began: float
    surface: str
    mode: str
    status: int = 500


@dataclass(slots=True, kw_only=True)
class HttpVisit(Visit):
    """One HTTP request.

    Attributes:
        headers: by lower-case name.
    """

    method: str
    headers: Mapping[str, str]
    query: bytes
    receive: Receive
    surface: str = "rest"
    mode: str = "read"

    def header(self, name: str) -> str:
        """Give a header by its lower-case name; empty if it was not sent."""
        return self.headers.get(name, "")


class RequestMetrics:
    """Counts and times answered requests."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock

    def answered(self, visit: Visit) -> None:
        """Count one request, whole answer included."""
        surface, mode = visit.surface, visit.mode
        self._metrics.counter(
            names.REQUESTS_TOTAL, surface=surface, mode=mode, status=str(visit.status)
        ).inc()
        self._metrics.histogram(names.REQUEST_SECONDS, surface=surface, mode=mode).observe(
            self._clock.monotonic() - visit.began
        )
