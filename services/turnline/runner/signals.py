"""What a runner counts, times and traces; the names are `turnline.telemetry.names`."""

from types import TracebackType

from turnline.errors import Code
from turnline.protocol import ChatReply, Envelope, Failure
from turnline.protocol.clock import Clock
from turnline.store import Outcome
from turnline.telemetry import Metrics, Span, Tracing, names
from turnline.telemetry.metrics import BoundGauge, BoundHistogram
from turnline.telemetry.schema import SpanSpec

_OUTCOMES = {
    Code.TURN_CANCELLED: "cancelled",
    Code.TURN_DEADLINE_EXCEEDED: "deadline",
    Code.AGENT_FAILED: "fatal",
}


class RunnerSignals:
    """The series and spans of one runner, bound once."""

    def __init__(self, metrics: Metrics, tracing: Tracing, clock: Clock) -> None:
        self._metrics = metrics
        self._tracing = tracing
        self._clock = clock
        self.in_flight = metrics.gauge(names.TURNS_IN_FLIGHT)
        self._stages = {
            stage: metrics.histogram(names.TURN_STAGE_SECONDS, stage=stage)
            for stage in ("queued", "agent", "commit", "publish")
        }

    def attempt(self, envelope: Envelope, attempt: int) -> "_InFlight":
        """Count and span one delivery; attempts at a turn are siblings under its request."""
        span = self._tracing.start_span(
            names.ATTEMPT,
            envelope.trace,
            request_id=envelope.request_id,
            session_id=envelope.session_id,
            attempt=attempt,
            queue="input",
        )
        return _InFlight(self.in_flight, span)

    def claimed(self, envelope: Envelope) -> None:
        """Time how long a request waited."""
        if envelope.enqueued_at:
            waited = self._clock.time() - envelope.enqueued_at
            self._stages["queued"].observe(max(0.0, waited))

    def agent(self, envelope: Envelope, agent: str) -> "_Timed":
        """Time and span the agent's work."""
        return self._timed("agent", self._span(names.AGENT_RUN, envelope, agent=agent))

    def commit(self, envelope: Envelope) -> "_Timed":
        """Time and span the commit."""
        return self._timed("commit", self._span(names.COMMIT, envelope))

    def publish(self, envelope: Envelope) -> "_Timed":
        """Time and span the publishing of the end."""
        return self._timed("publish", self._span(names.PUBLISH, envelope, queue="output"))

    def result(self, result: str) -> None:
        """Count an attempt by its result."""
        self._metrics.counter(names.TURN_ATTEMPTS_TOTAL, result=result).inc()

    def retry(self, cause: str) -> None:
        """Count a try made again."""
        self._metrics.counter(names.RETRIES_TOTAL, cause=cause).inc()

    def ended(self, outcome: Outcome) -> None:
        """Count a committed end."""
        payload = outcome.payload
        kind = "ok" if isinstance(payload, ChatReply) else _outcome_of(payload)
        self._metrics.counter(names.TURNS_TOTAL, outcome=kind).inc()

    def gave_up(self, code: Code) -> None:
        """Count a turn that was given up."""
        kind = "deadline" if code is Code.TURN_DEADLINE_EXCEEDED else "failed"
        self._metrics.counter(names.TURNS_TOTAL, outcome=kind).inc()

    def _timed(self, stage: str, span: Span) -> "_Timed":
        return _Timed(self._stages[stage], self._clock, span)

    def _span(self, spec: SpanSpec, envelope: Envelope, **attributes: str) -> Span:
        return self._tracing.start_span(
            spec,
            None,
            request_id=envelope.request_id,
            session_id=envelope.session_id,
            **attributes,
        )


class _InFlight:
    """A block that is counted in a gauge while it runs."""

    __slots__ = ("_gauge", "_span")

    def __init__(self, gauge: BoundGauge, span: Span) -> None:
        self._gauge = gauge
        self._span = span

    def __enter__(self) -> Span:
        self._gauge.inc()
        return self._span.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._span.__exit__(kind, error, trace)
        self._gauge.dec()


class _Timed:
    """A block whose seconds go into a histogram, however it ends."""

    __slots__ = ("_clock", "_seconds", "_span", "_started")

    def __init__(self, seconds: BoundHistogram, clock: Clock, span: Span) -> None:
        self._seconds = seconds
        self._clock = clock
        self._span = span

    def __enter__(self) -> Span:
        self._started = self._clock.monotonic()
        return self._span.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._span.__exit__(kind, error, trace)
        self._seconds.observe(self._clock.monotonic() - self._started)


def _outcome_of(failure: Failure) -> str:
    code = failure.known_code
    return _OUTCOMES.get(code, "failed") if code is not None else "failed"
