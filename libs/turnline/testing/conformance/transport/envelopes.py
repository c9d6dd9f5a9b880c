"""Envelopes for cases, small and large."""

from dataclasses import replace

from turnline.protocol import (
    ChatEvent,
    ChatReply,
    ChatRequest,
    Chunk,
    DeliveryMode,
    Envelope,
    EventType,
    TraceContext,
)

# Long before any clock of a run, so that a renewed time cannot be mistaken for it.
ADMITTED_AT = 1_600_000_000.0


def request(session_id: str, request_id: str, *, scope: str = "", prompt: str = "") -> Envelope:
    """Make a request; its prompt is its own id unless one is given."""
    return Envelope(
        request_id=request_id,
        session_id=session_id,
        scope=scope,
        user_id=scope,
        delivery_mode=DeliveryMode.KEEP,
        payload=ChatRequest(prompt=prompt or request_id, agent="echo", user_id=scope),
        deadline=ADMITTED_AT + 60.0,
        enqueued_at=ADMITTED_AT,
    )


def answer(session_id: str, request_id: str, *, scope: str = "", result: str = "") -> Envelope:
    """Make the final answer to `request` with the same arguments."""
    asked = request(session_id, request_id, scope=scope)
    reply = ChatReply(result=result or request_id)
    return asked.answer(attempt=1, fence=1, payload=reply, status_code=200)


def chunks(session_id: str, request_id: str, *texts: str, first: int = 0) -> Envelope:
    """Make an output envelope of text deltas numbered from `first`, without an end."""
    asked = replace(request(session_id, request_id), delivery_mode=DeliveryMode.KEEP_STREAM)
    pieces = [
        Chunk(attempt=1, index=index, event=ChatEvent(type=EventType.TEXT_DELTA, content=text))
        for index, text in enumerate(texts, start=first)
    ]
    return asked.answer(attempt=1, fence=1, chunks=pieces)


def full_request() -> Envelope:
    """Make a request with every envelope field set to something of its own."""
    return Envelope(
        request_id="request-1",
        session_id="session-1",
        scope="user-1",
        user_id="user-1",
        delivery_mode=DeliveryMode.PUSH_STREAM,
        payload=ChatRequest(
            prompt="Wie geht's? 今日は 🙂",
            agent="echo",
            user_id="user-1",
            group_id="group-1",
            thread_name="thread-1",
            extra={"depth": 3, "tags": ["a", "b"], "nested": {"on": True, "none": None}},
        ),
        deadline=ADMITTED_AT + 120.5,
        enqueued_at=ADMITTED_AT + 0.25,
        trace=TraceContext(
            traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            tracestate="vendor=1",
        ),
        attributes={"tenant": "blue", "empty": ""},
    )


def label(envelope: Envelope) -> str:
    """Name an envelope by its turn."""
    return envelope.request_id
