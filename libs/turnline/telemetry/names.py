"""Every signal Turnline emits.  A signal that does not stand here cannot be emitted.

To add one, add a row; `docs/telemetry.md` is made from this file (`python -m
turnline.telemetry.docs`).  Values of labels are closed sets, so that no caller can make series
without end.  No field, label or attribute holds a prompt, an answer, a token or a body.
"""

from turnline.errors import Code
from turnline.telemetry.schema import (
    CounterSpec,
    EventSpec,
    GaugeSpec,
    HistogramSpec,
    Label,
    Metric,
    SpanKind,
    SpanSpec,
)

# --- metrics --------------------------------------------------------------------------------------

_QUEUE = Label(name="queue", values=("input", "output"))
_SURFACE = Label(name="surface", values=("rest", "sse", "websocket", "grpc"))
_MODE = Label(
    name="mode",
    values=("rest_sync", "rest_async", "stream", "async", "read", "cancel", "resume", "custom"),
)
_FAST_SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)
_TURN_SECONDS = (*_FAST_SECONDS, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)


def _counter(name: str, help_text: str, *labels: Label) -> CounterSpec:
    return CounterSpec(name=name, help=help_text, labels=labels)


def _gauge(name: str, help_text: str, *labels: Label, unit: str = "") -> GaugeSpec:
    return GaugeSpec(name=name, help=help_text, labels=labels, unit=unit)


def _label(name: str, *values: str) -> Label:
    return Label(name=name, values=values)


QUEUE_WAITING = _gauge(
    "queue_waiting",
    "Envelopes not out for delivery, those that wait for their retry included.",
    _QUEUE,
)
QUEUE_IN_FLIGHT = _gauge(
    "queue_in_flight",
    "Deliveries out and not settled; scale on this plus queue_waiting.",
    _QUEUE,
)
QUEUE_DEAD = _gauge("queue_dead", "Dead letters held; anything above 0 wants a look.", _QUEUE)
QUEUE_OLDEST_AGE_SECONDS = _gauge(
    "queue_oldest_age_seconds",
    "Age of the oldest envelope that is not settled; 0 when the queue is empty.",
    _QUEUE,
    unit="seconds",
)
QUEUE_STATS_FAILURES_TOTAL = _counter(
    "queue_stats_failures_total",
    "Scrapes that could not ask a queue; its gauges are absent from such a scrape.",
    _QUEUE,
)
TURNS_TOTAL = _counter(
    "turns_total",
    "Turns that ended, by how: fatal is an agent's own refusal, failed is every other error.",
    _label("outcome", "ok", "failed", "cancelled", "deadline", "fatal"),
)
TURN_ATTEMPTS_TOTAL = _counter(
    "turn_attempts_total",
    "Attempts, by result: ended (committed), replayed (had ended before), retry, throttled, "
    "gave_up, fenced (a newer claim exists), released (handed back unspent).",
    _label("result", "ended", "replayed", "retry", "throttled", "gave_up", "fenced", "released"),
)
TURNS_IN_FLIGHT = _gauge("turns_in_flight", "Turns this runner works on now.")
TURN_STAGE_SECONDS = HistogramSpec(
    name="turn_stage_seconds",
    help="Where a turn's time goes: queued (admitted to claimed), agent, commit, publish, "
    "total (admitted to stored).",
    unit="seconds",
    labels=(_label("stage", "queued", "agent", "commit", "publish", "total"),),
    buckets=_TURN_SECONDS,
)
REQUESTS_TOTAL = _counter(
    "requests_total",
    "Requests and client frames answered, by HTTP status (frames carry one too).",
    _SURFACE,
    _MODE,
    Label(name="status", pattern="[1-5][0-9]{2}"),
)
REQUEST_SECONDS = HistogramSpec(
    name="request_seconds",
    help="Time from a request to its whole answer; for a stream, to its end.",
    unit="seconds",
    labels=(_SURFACE, _MODE),
    buckets=_TURN_SECONDS,
)
CONNECTIONS = _gauge("connections", "Client sockets this pod holds.")
FRAMES_PUSHED_TOTAL = _counter(
    "frames_pushed_total",
    "Frames for client sockets: delivered, held (no socket now), stale (its pod no longer has "
    "the socket), unreachable (its pod does not answer), slow (the client reads too slowly).",
    _label("result", "delivered", "held", "stale", "unreachable", "slow"),
)
DEAD_LETTERS_TOTAL = _counter(
    "dead_letters_total",
    "Envelopes given up, by the code of the failure.",
    _QUEUE,
    _label("reason_code", *(code.value for code in Code)),
)
DEDUP_DROPPED_TOTAL = _counter(
    "dedup_dropped_total", "Envelopes not queued because the same one was before."
)
STREAM_GAPS_TOTAL = _counter(
    "stream_gaps_total", "Readers told that chunks they had not seen are gone."
)
LEASE_LOST_TOTAL = _counter(
    "lease_lost_total",
    "Work stopped because its lease could not be renewed; rises when a store or broker is slow "
    "or the event loop is blocked.",
)
RETRIES_TOTAL = _counter(
    "retries_total",
    "Tries that were made again, by what failed.",
    _label("cause", "agent", "throttled", "handler", "store", "transport", "settle"),
)
EVENT_LOOP_LAG_SECONDS = HistogramSpec(
    name="event_loop_lag_seconds",
    help="How late the event loop runs what is due; above 0.1 something blocks it.",
    unit="seconds",
    buckets=(*_FAST_SECONDS, 5.0, 30.0),
)

METRICS: tuple[Metric, ...] = (
    QUEUE_WAITING,
    QUEUE_IN_FLIGHT,
    QUEUE_DEAD,
    QUEUE_OLDEST_AGE_SECONDS,
    QUEUE_STATS_FAILURES_TOTAL,
    TURNS_TOTAL,
    TURN_ATTEMPTS_TOTAL,
    TURNS_IN_FLIGHT,
    TURN_STAGE_SECONDS,
    REQUESTS_TOTAL,
    REQUEST_SECONDS,
    CONNECTIONS,
    FRAMES_PUSHED_TOTAL,
    DEAD_LETTERS_TOTAL,
    DEDUP_DROPPED_TOTAL,
    STREAM_GAPS_TOTAL,
    LEASE_LOST_TOTAL,
    RETRIES_TOTAL,
    EVENT_LOOP_LAG_SECONDS,
)

# --- log events -----------------------------------------------------------------------------------

# Fields any event may carry.  `bind` takes these and no others.
BOUND_FIELDS = ("request_id", "session_id", "attempt", "connection_id", "trace_id", "span_id")


def _event(name: str, help_text: str, *fields: str) -> EventSpec:
    return EventSpec(name=name, help=help_text, fields=fields)


EVENTS: tuple[EventSpec, ...] = (
    _event("process.starting", "Start-up begins.", "version", "topology", "transport", "mode"),
    _event("process.ready", "Everything is up; work is taken.", "seconds", "port"),
    _event("server.listening", "A server beside the HTTP one takes calls.", "surface", "port"),
    _event("process.draining", "SIGTERM came: nothing new is taken.", "grace_seconds", "in_flight"),
    _event(
        "process.overran", "Draining took too long; what was left is cancelled.", "grace_seconds"
    ),
    _event("process.stopped", "The process is about to exit."),
    _event("process.failed", "A part of the process failed; it exits with code 1.", "reason"),
    _event("config.warning", "A setting works but is likely not meant.", "setting", "reason"),
    _event("auth.refused", "A token was not accepted.", "reason"),
    _event("auth.validator_failed", "The AuthValidator raised or took too long.", "reason"),
    _event("turn.admitted", "A turn was taken and queued.", "surface", "mode"),
    _event("turn.started", "An attempt at a turn began.", "agent", "fence"),
    _event("turn.committed", "A turn ended and is recorded.", "status_code", "seconds", "chunks"),
    _event("turn.retry", "An attempt failed; another follows.", "cause", "after_seconds"),
    _event("turn.failed", "A turn was given up; its caller is told.", "code"),
    _event("turn.cancelled", "A turn was stopped at its caller's wish."),
    _event("turn.replayed", "A turn that had ended was answered from the ledger."),
    _event("turn.fenced", "A newer claim of the session exists; this one stops.", "fence"),
    _event(
        "turn.unpublished",
        "A committed reply could not be queued; it is handed back and replayed.",
    ),
    _event("agent.refused", "An agent ended a turn with an error.", "agent", "status_code"),
    _event("agent.retryable", "An agent asked for another attempt.", "agent"),
    _event("agent.failed", "An agent raised; see the traceback.", "agent"),
    _event("agent.stuck", "An agent ignored cancellation and was left behind.", "agent"),
    _event("delivery.dead_lettered", "An envelope was given up.", "queue", "reason", "code"),
    _event("delivery.lease_lost", "A lease could not be renewed; its work stops.", "reason"),
    _event("delivery.left", "A delivery is somebody else's now; not settled here.", "queue"),
    _event("delivery.unsettled", "A broker took no settlement in time, or refused it.", "queue"),
    _event("delivery.handler_failed", "Handling an envelope raised.", "queue", "code"),
    _event("message.undecodable", "Bytes on a queue are no envelope.", "queue", "reason", "size"),
    _event(
        "dead_letter.dropped",
        "The oldest dead letter gave way to a new one.",
        "queue",
        "letter_id",
        "limit",
    ),
    _event(
        "transport.consumers",
        "What limits how much of a queue is worked on at once.",
        "queue",
        "partitions",
        "consumers",
        "server_consumers",
        "limit",
    ),
    _event("dedup.window_shortened", "More ids in the dedup window than it holds.", "queue"),
    _event("dependency.unavailable", "A dependency does not answer.", "dependency", "reason"),
    _event("dependency.recovered", "It answers again.", "dependency", "seconds"),
    _event("request.failed", "Answering a request raised.", "surface", "mode", "code"),
    _event("route.failed", "A custom route raised.", "route"),
    _event("connection.opened", "A client socket opened."),
    _event("connection.closed", "A client socket closed.", "code", "reason", "seconds"),
    _event("connection.refused", "A client socket was not accepted.", "code", "reason"),
    _event("connection.slow", "A client reads too slowly; its socket is closed.", "queued"),
    _event("connection.slow_at_close", "A client did not read its last frames in time."),
    _event("stream.idle", "A stream was silent too long; its reader was let go."),
    _event("stream.gap", "A reader was told that chunks are gone.", "first", "last"),
    _event("push.stale_connection", "A pod no longer holds a socket; it is forgotten."),
    _event("push.unreachable", "A pod did not take frames.", "reason"),
    _event("watcher.failed", "A background watch raised; it is not restarted."),
    _event("tracing.unflushed", "Spans were not exported in time; some may be lost.", "seconds"),
    _event("library.message", "A line of a library or of an agent.", "logger", "message"),
)

# --- spans ----------------------------------------------------------------------------------------

_IDS = ("request_id", "session_id")

REQUEST = SpanSpec(
    name="turn.request",
    kind=SpanKind.SERVER,
    help="A client's request, until it is admitted (or, for rest_sync, answered).",
    parent="the client's span, from its `traceparent` header",
    attributes=(*_IDS, "surface", "mode", "status_code"),
)
ENQUEUE = SpanSpec(
    name="turn.enqueue",
    kind=SpanKind.PRODUCER,
    help="The send to the input queue, until the broker confirmed it.",
    parent="turn.request",
    attributes=(*_IDS, "queue"),
)
ATTEMPT = SpanSpec(
    name="turn.attempt",
    kind=SpanKind.CONSUMER,
    help="One attempt, from its delivery to its settlement; attempts are siblings.",
    parent="the span named in the envelope (turn.request)",
    attributes=(*_IDS, "attempt", "fence", "queue", "result"),
)
AGENT_RUN = SpanSpec(
    name="agent.run",
    kind=SpanKind.INTERNAL,
    help="The agent at work; spans that the agent itself makes are its children.",
    parent="turn.attempt",
    attributes=(*_IDS, "agent", "chunks"),
)
COMMIT = SpanSpec(
    name="turn.commit",
    kind=SpanKind.CLIENT,
    help="The write of history, ledger mark and reply.",
    parent="turn.attempt",
    attributes=_IDS,
)
PUBLISH = SpanSpec(
    name="turn.publish",
    kind=SpanKind.PRODUCER,
    help="The send to the output queue, until the broker confirmed it.",
    parent="turn.attempt",
    attributes=(*_IDS, "queue"),
)
ANSWER = SpanSpec(
    name="turn.answer",
    kind=SpanKind.CONSUMER,
    help="Storing and pushing what came from the output queue.",
    parent="the span named in the envelope (turn.request)",
    attributes=(*_IDS, "attempt", "queue", "status_code"),
)
PUSH = SpanSpec(
    name="turn.push",
    kind=SpanKind.CLIENT,
    help="One push to the sockets of a user.",
    parent="turn.answer",
    attributes=(*_IDS, "frames", "sockets"),
)

SPANS: tuple[SpanSpec, ...] = (
    REQUEST,
    ENQUEUE,
    ATTEMPT,
    AGENT_RUN,
    COMMIT,
    PUBLISH,
    ANSWER,
    PUSH,
)

_FIELDS = {event.name: frozenset(event.fields) for event in EVENTS}


def declared_events() -> frozenset[str]:
    """The names of all log events."""
    return frozenset(_FIELDS)


def declared_fields(event: str) -> frozenset[str]:
    """The fields `event` may carry besides BOUND_FIELDS and `exc_info`.

    Raises:
        KeyError: no event of that name is declared.
    """
    return _FIELDS[event]
