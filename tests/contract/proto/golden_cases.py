"""What the golden vectors are made of: named envelopes, and messages of the gRPC services.

    PYTHONPATH=libs:gen/python python tests/contract/proto/golden_cases.py

writes `golden/*.json` anew.  A changed vector is a changed wire format: see README.md.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson
from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from turnline.errors import RetryHint
from turnline.protocol import (
    Attachment,
    ChatEvent,
    ChatReply,
    ChatRequest,
    Chunk,
    DeliveryMode,
    Envelope,
    EventType,
    Failure,
    TraceContext,
    Unread,
)
from turnline.protocol.codec import encode
from turnline.protocol.json_body import encode_json_body
from turnline.v1 import (
    agent_pb2,
    agent_service_pb2,
    chat_pb2,
    chat_service_pb2,
    chunk_pb2,
    envelope_pb2,
    failure_pb2,
    gateway_service_pb2,
    push_pb2,
    push_service_pb2,
)

GOLDEN = Path(__file__).absolute().parent / "golden"
PACKAGE = "turnline.v1"
MODULES: tuple[ModuleType, ...] = (
    agent_pb2,
    agent_service_pb2,
    chat_pb2,
    chat_service_pb2,
    chunk_pb2,
    envelope_pb2,
    failure_pb2,
    gateway_service_pb2,
    push_pb2,
    push_service_pb2,
)

_MINIMAL = Envelope(
    request_id="aa1b4c83-e837-4a98-86b0-992ff4870544",
    session_id="s1",
    payload=ChatRequest(prompt="hello"),
)
_ADMITTED = replace(
    _MINIMAL,
    scope="u1",
    user_id="u1",
    delivery_mode=DeliveryMode.KEEP_STREAM,
    payload=ChatRequest(prompt="hello", user_id="u1"),
    deadline=1_790_000_060.25,
    enqueued_at=1_790_000_000.125,
    trace=TraceContext(
        traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", tracestate="k=v"
    ),
    attributes={"integration": "slack", "endpoint_url": "https://gateway.example/push"},
)
_EVENTS = (
    ChatEvent(type=EventType.MESSAGE_START, message_id="m1", role="assistant"),
    ChatEvent(type=EventType.TEXT_DELTA, message_id="m1", content="Høi 👋 "),
    ChatEvent(type=EventType.MESSAGE_END, message_id="m1"),
    ChatEvent(type=EventType.TOOL_CALL_START, tool_call_id="t1", name="search"),
    ChatEvent(type=EventType.TOOL_CALL_ARGS, tool_call_id="t1", content='{"q":'),
    ChatEvent(type=EventType.TOOL_CALL_END, tool_call_id="t1"),
    ChatEvent(type=EventType.TOOL_CALL_RESULT, tool_call_id="t1", content="none"),
    ChatEvent(type=EventType.STEP_START, name="plan"),
    ChatEvent(type=EventType.STEP_END, name="plan"),
    ChatEvent(type=EventType.REASONING_START, message_id="m2"),
    ChatEvent(type=EventType.REASONING_DELTA, message_id="m2", content="hm"),
    ChatEvent(type=EventType.REASONING_END, message_id="m2"),
    ChatEvent(type=EventType.AUDIO_DELTA, message_id="m3", content="UklGRg=="),
    ChatEvent(type=EventType.INTERRUPT),
    ChatEvent(
        type=EventType.RUN_PAUSED,
        data={"run_id": "run-1", "agent": "echo", "interruptions": [{"id": "d1"}]},
    ),
    ChatEvent(type=EventType.CUSTOM, data={"progress": 0.5}),
)


def _chunks(*events: ChatEvent) -> tuple[Chunk, ...]:
    return tuple(Chunk(attempt=2, index=i, event=event) for i, event in enumerate(events))


ENVELOPES: Mapping[str, Envelope] = {
    "request-minimal": _MINIMAL,
    "request-admitted": _ADMITTED,
    "request-every-field": replace(
        _ADMITTED,
        delivery_mode=DeliveryMode.PUSH,
        payload=ChatRequest(
            prompt="Was steht im Bild? 🖼",
            agent="vision",
            user_id="u1",
            group_id="g1",
            thread_name="Holiday",
            files=(Attachment(data="aGk=", name="a.txt", mime_type="text/plain"),),
            images=(Attachment(data="https://example.org/a.png", name="a.png"),),
            requests=({"type": "text", "text": "and this"},),
            schedule={"cron": "0 9 * * 1", "timezone": "Europe/Oslo", "session_mode": "new"},
            extra={"b": [1, 2.5, True, None, "x"], "a": {"nested": {}}},
        ),
    ),
    "request-resume": replace(
        _ADMITTED,
        delivery_mode=DeliveryMode.PUSH_STREAM,
        payload=ChatRequest(
            resume={
                "run_id": "run-1",
                "decisions": [
                    {"id": "d1", "status": "approved"},
                    {"id": "d2", "status": "denied", "message": "no", "payload": {"max": 3}},
                    {"id": "d3", "status": "cancelled", "payload": None, "by": "u2"},
                ],
            }
        ),
    ),
    "request-scheduled-occurrence": replace(
        _MINIMAL,
        user_id="u1",
        payload=ChatRequest(
            prompt="report",
            user_id="u1",
            scheduled_task_id="task-1",
            scheduled_time="2026-10-01T09:00:00Z",
        ),
    ),
    "request-scope-with-tilde": replace(_ADMITTED, scope="a~b", session_id="c~d"),
    "reply": _ADMITTED.answer(
        attempt=1, fence=7, payload=ChatReply(result="echo[1]: hello"), status_code=200
    ),
    "reply-empty": _MINIMAL.answer(attempt=1, fence=1, payload=ChatReply()),
    "reply-paused": _ADMITTED.answer(
        attempt=1,
        fence=7,
        payload=ChatReply(
            result="", extra={"status": "PAUSED", "run_id": "run-1", "interruptions": [{"id": "d"}]}
        ),
        status_code=202,
    ),
    "failure": _ADMITTED.answer(
        attempt=3,
        fence=9,
        payload=Failure(code="agent_failed", message="The agent failed", status_code=500),
    ),
    "failure-retry-after": _ADMITTED.answer(
        attempt=0,
        payload=Failure(
            code="session_queue_full",
            message="Too many turns wait in this session",
            status_code=429,
            retry=RetryHint.AFTER,
            retry_after=1.5,
            field="session_id",
        ),
    ),
    "failure-of-a-newer-code": _MINIMAL.answer(
        attempt=1,
        payload=Failure(
            code="code_of_tomorrow",
            message="No",
            status_code=409,
            retry=RetryHint.NOW,
            retry_after=0.0,
        ),
    ),
    "chunk": _ADMITTED.answer(attempt=2, fence=8, chunks=_chunks(_EVENTS[0], _EVENTS[1])[1:]),
    "chunks-of-every-event": _ADMITTED.answer(attempt=2, fence=2**40, chunks=_chunks(*_EVENTS)),
    "chunks-and-reply": _ADMITTED.answer(
        attempt=2,
        fence=8,
        chunks=_chunks(*_EVENTS[:3]),
        payload=ChatReply(result="Høi 👋 "),
        status_code=200,
        chunk_count=3,
    ),
    "chunks-and-failure": _ADMITTED.answer(
        attempt=2,
        fence=8,
        chunks=_chunks(_EVENTS[0]),
        payload=Failure(code="turn_deadline_exceeded", message="Too late", status_code=504),
        chunk_count=1,
    ),
    # Field 900 of the envelope and of its payload, as a later minor version might add them.
    "request-of-a-newer-minor-version": replace(
        _ADMITTED, unread=Unread(envelope=b"\xa2\x38\x03new", payload=b"\xa0\x38\x07")
    ),
}

_REQUEST = {"prompt": "hello", "user_id": "u1"}
_END = {
    "request_id": "r1",
    "session_id": "s1",
    "status_code": 200,
    "attempt": 1,
    "chunk_count": 2,
    "reply": {"result": "hi"},
}
_FAILURE = {
    "code": "queue_full",
    "message": "Full",
    "status_code": 503,
    "retry": "RETRY_HINT_AFTER",
    "retry_after": "1s",
}

# Vector name -> message and its ProtoJSON form.
SERVICE_MESSAGES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "agent-run-request": (
        "RunRequest",
        {
            "agent": "echo",
            "turn": {
                "request_id": "r2",
                "session_id": "s1",
                "request": _REQUEST,
                "user_id": "u1",
                "attempt": 1,
                "deadline": "2026-09-21T14:14:20.250Z",
                "history": [
                    {
                        "request_id": "r1",
                        "prompt": "a",
                        "reply": "b",
                        "agent": "echo",
                        "at": "2026-09-21T14:13:20Z",
                        "items": [{"role": "user"}],
                    }
                ],
                "state": {"count": 1.0},
            },
        },
    ),
    "agent-run-heartbeat": ("RunResponse", {"heartbeat": {}}),
    "agent-run-event": (
        "RunResponse",
        {"event": {"type": "EVENT_TYPE_TEXT_DELTA", "message_id": "m", "content": "x"}},
    ),
    "agent-run-reply": (
        "RunResponse",
        {
            "reply": {
                "text": "hi",
                "status_code": 200,
                "extra": {"a": 1.0},
                "items": [{"role": "assistant"}],
                "state": {},
            }
        },
    ),
    "agent-run-failure": (
        "RunResponse",
        {
            "failure": {
                "message": "rate limit",
                "retryable": True,
                "retry_after": "2.500s",
                "spares_attempt": True,
            }
        },
    ),
    "agent-list-request": ("ListAgentsRequest", {}),
    "agent-list-response": (
        "ListAgentsResponse",
        {"agents": [{"name": "echo", "description": "Says it again"}]},
    ),
    "chat-request": (
        "ChatServiceChatRequest",
        {"session_id": "s1", "request_id": "r1", "request": _REQUEST},
    ),
    "chat-response": ("ChatServiceChatResponse", {"end": _END}),
    "chat-submit-request": ("SubmitRequest", {"session_id": "s1", "request": _REQUEST}),
    "chat-submit-response": (
        "SubmitResponse",
        {"request_id": "r1", "session_id": "s1", "known": True},
    ),
    "chat-get-reply-request": ("GetReplyRequest", {"request_id": "r1", "wait": "30s"}),
    "chat-get-reply-pending": (
        "GetReplyResponse",
        {"pending": {"request_id": "r1", "session_id": "s1"}},
    ),
    "chat-get-reply-failed": (
        "GetReplyResponse",
        {"end": {k: v for k, v in _END.items() if k != "reply"} | {"failure": _FAILURE}},
    ),
    "chat-stream-request": (
        "StreamChatRequest",
        {"session_id": "s1", "request_id": "r1", "after": {"attempt": 1, "index": 4}},
    ),
    "chat-stream-from-the-beginning-of-an-attempt": (
        "StreamChatRequest",
        {"request_id": "r1", "after": {"attempt": 2, "index": -1}},
    ),
    "chat-stream-admitted": (
        "StreamChatResponse",
        {"admitted": {"request_id": "r1", "session_id": "s1"}},
    ),
    "chat-stream-chunk": (
        "StreamChatResponse",
        {"chunk": {"attempt": 1, "event": {"type": "EVENT_TYPE_STEP_START", "name": "plan"}}},
    ),
    "chat-stream-gap": ("StreamChatResponse", {"gap": {"attempt": 1, "first": 2, "last": 5}}),
    "chat-stream-restart": ("StreamChatResponse", {"restart": {"attempt": 2}}),
    "chat-stream-end": ("StreamChatResponse", {"end": _END}),
    "chat-cancel-request": ("CancelRequest", {"request_id": "r1"}),
    "chat-cancel-response": ("CancelResponse", {"state": "TURN_STATE_RUNNING"}),
    "gateway-frame-of-a-client": (
        "ConnectRequest",
        {"frame": {"route": "resume", "request_id": "r1", "body": {"after": "1-4"}}},
    ),
    "gateway-frame-for-a-client": (
        "ConnectResponse",
        {
            "frame": {
                "type": "STREAM_CHUNK",
                "delta": "Høi",
                "done": False,
                "request_id": "r1",
                "attempt": 1.0,
                "index": 5.0,
            }
        },
    ),
    "push-request": (
        "PushRequest",
        {"frames": {"user_id": "u1", "frames": [{"type": "SYSTEM_RESPONSE"}]}, "hold": True},
    ),
    "push-response": ("PushResponse", {"connections": 2}),
}


def new_message(name: str) -> Message:
    """Make an empty message of the package by its short name."""
    for module in MODULES:
        if descriptor := module.DESCRIPTOR.message_types_by_name.get(name):
            return GetMessageClass(descriptor)()
    raise KeyError(name)


def proto_json(message: Message) -> dict[str, Any]:
    """Give a message's ProtoJSON form, with the field names of the .proto files."""
    found: dict[str, Any] = json_format.MessageToDict(message, preserving_proto_field_name=True)
    return found


def envelope_vector(name: str, envelope: Envelope) -> dict[str, Any]:
    """Make the vector of an envelope."""
    raw = encode(envelope)
    body, attributes = encode_json_body(envelope)
    return {
        "name": name,
        "message": f"{PACKAGE}.Envelope",
        "value": proto_json(envelope_pb2.Envelope.FromString(raw)),
        "binary": raw.hex(),
        "json_body": orjson.loads(body),
        "attributes": attributes,
    }


def message_vector(name: str, message_name: str, value: dict[str, Any]) -> dict[str, Any]:
    """Make the vector of a service's message."""
    message = json_format.ParseDict(value, new_message(message_name))
    return {
        "name": name,
        "message": f"{PACKAGE}.{message_name}",
        "value": proto_json(message),
        "binary": message.SerializeToString(deterministic=True).hex(),
    }


def vectors() -> dict[str, dict[str, Any]]:
    """Make all vectors, by name."""
    made = {name: envelope_vector(name, envelope) for name, envelope in ENVELOPES.items()}
    for name, (message_name, value) in SERVICE_MESSAGES.items():
        made[name] = message_vector(name, message_name, value)
    return made


def write() -> None:
    """Write all vectors, and delete those that no longer have a case."""
    made = vectors()
    for path in GOLDEN.glob("*.json"):
        if path.stem not in made:
            path.unlink()
    GOLDEN.mkdir(exist_ok=True)
    for name, vector in made.items():
        text = json.dumps(vector, indent=2, ensure_ascii=False) + "\n"
        (GOLDEN / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
