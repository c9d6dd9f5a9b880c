"""What a responder counts, times and traces; the names are `turnline.telemetry.names`."""

from turnline.protocol import Envelope
from turnline.protocol.clock import Clock
from turnline.telemetry import Metrics, Span, Tracing, get_logger, names

_log = get_logger("responder")

_STORE = "response store"


class ResponderSignals:
    """The series and spans of one responder, bound once."""

    def __init__(self, metrics: Metrics, tracing: Tracing, clock: Clock) -> None:
        self._tracing = tracing
        self._clock = clock
        self._total = metrics.histogram(names.TURN_STAGE_SECONDS, stage="total")
        self._store_retries = metrics.counter(names.RETRIES_TOTAL, cause="store")

    def answer(self, envelope: Envelope) -> Span:
        """Span the keeping and pushing of one envelope."""
        span = self._tracing.start_span(
            names.ANSWER,
            envelope.trace,
            request_id=envelope.request_id,
            session_id=envelope.session_id,
            attempt=envelope.attempt,
            queue="output",
        )
        if envelope.payload is not None:
            span.set(status_code=envelope.status_code or 200)
        return span

    def push(self, envelope: Envelope, *, frames: int) -> Span:
        """Span one push; its caller sets `sockets`, how many took it."""
        return self._tracing.start_span(
            names.PUSH,
            None,
            request_id=envelope.request_id,
            session_id=envelope.session_id,
            frames=frames,
        )

    def stored(self, envelope: Envelope) -> None:
        """Time a turn whose end is stored; again for one that is delivered again."""
        if envelope.enqueued_at:
            self._total.observe(max(0.0, self._clock.time() - envelope.enqueued_at))

    def store_unavailable(self, reason: str) -> None:
        """The store did not answer; it is asked again."""
        self._store_retries.inc()
        _log.warning("dependency.unavailable", dependency=_STORE, reason=reason)

    def store_recovered(self, seconds: float) -> None:
        """The store answers again, after so many seconds."""
        _log.info("dependency.recovered", dependency=_STORE, seconds=round(seconds, 3))
