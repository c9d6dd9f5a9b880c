"""What a runner counts, times and traces; the names are `turnline.telemetry.names`."""

from collections.abc import Iterator
from contextlib import contextmanager

from turnline.errors import Code
from turnline.protocol import ChatReply, Envelope, Failure
from turnline.protocol.clock import Clock
from turnline.store import Outcome
from turnline.telemetry import Metrics, Span, Tracing, names
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

    @contextmanager
    def attempt(self, envelope: Envelope, attempt: int) -> Iterator[Span]:
        """Span one delivery; attempts at a turn are siblings under its request."""
        with (
            self.working(),
            self._tracing.start_span(
                names.ATTEMPT,
                envelope.trace,
                request_id=envelope.request_id,
                session_id=envelope.session_id,
                attempt=attempt,
                queue="input",
            ) as span,
        ):
            yield span

    @contextmanager
    def working(self) -> Iterator[None]:
        """Count a turn as in flight."""
        self.in_flight.inc()
        try:
            yield
        finally:
            self.in_flight.dec()

    def claimed(self, envelope: Envelope) -> None:
        """Time how long a request waited."""
        if envelope.enqueued_at:
            waited = self._clock.time() - envelope.enqueued_at
            self._stages["queued"].observe(max(0.0, waited))

    @contextmanager
    def agent(self, envelope: Envelope, agent: str) -> Iterator[Span]:
        """Time and span the agent's work."""
        with self._timed("agent"), self._span(names.AGENT_RUN, envelope, agent=agent) as span:
            yield span

    @contextmanager
    def commit(self, envelope: Envelope) -> Iterator[None]:
        """Time and span the commit."""
        with self._timed("commit"), self._span(names.COMMIT, envelope):
            yield

    @contextmanager
    def publish(self, envelope: Envelope) -> Iterator[None]:
        """Time and span the publishing of the end."""
        with self._timed("publish"), self._span(names.PUBLISH, envelope, queue="output"):
            yield

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

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started = self._clock.monotonic()
        try:
            yield
        finally:
            self._stages[stage].observe(self._clock.monotonic() - started)

    def _span(self, spec: SpanSpec, envelope: Envelope, **attributes: str) -> Span:
        return self._tracing.start_span(
            spec,
            None,
            request_id=envelope.request_id,
            session_id=envelope.session_id,
            **attributes,
        )


def _outcome_of(failure: Failure) -> str:
    code = failure.known_code
    return _OUTCOMES.get(code, "failed") if code is not None else "failed"
