"""Values as a server keeps them: JSON with short names, absent where a value is the usual one.

What is written here is read by other releases during a roll-out, so names stay; unknown ones are
passed over.
"""

from typing import Any

import orjson

from turnline.errors import RetryHint, TurnCancelledError
from turnline.protocol import ChatEvent, ChatReply, Chunk, EventType, Failure, TurnRecord
from turnline.store.json_values import decode_object, encode_json
from turnline.store.ports import Outcome, StoredReply

_EVENT_FIELDS = ("message_id", "role", "content", "tool_call_id", "name", "data")
_EVENT_TYPES = {kind.value: kind for kind in EventType}


def encode_reply(reply: StoredReply) -> bytes:
    """Give the text of an end.

    Raises:
        ValueError: its payload is not JSON (see `encode_json`).
    """
    body = _payload_body(reply.payload)
    body |= {"id": reply.request_id, "session": reply.session_id, "status": reply.status_code}
    if reply.attempt:
        body["attempt"] = reply.attempt
    if reply.chunk_count:
        body["chunks"] = reply.chunk_count
    return encode_json(body, name="reply")


def decode_reply(raw: bytes) -> StoredReply:
    """Read what `encode_reply` gave."""
    body = decode_object(raw)
    return StoredReply(
        request_id=body["id"],
        session_id=body["session"],
        status_code=body["status"],
        payload=_payload(body),
        attempt=body.get("attempt", 0),
        chunk_count=body.get("chunks", 0),
    )


def encode_chunk(chunk: Chunk) -> bytes:
    """Give the text of a chunk's event; its place is kept beside it."""
    event = chunk.event
    body: dict[str, Any] = {"type": event.type.value}
    for name in _EVENT_FIELDS:
        if value := getattr(event, name):
            body[name] = value
    return encode_json(body, name="event") if event.data else orjson.dumps(body)


def decode_chunk(attempt: int, index: int, raw: bytes) -> Chunk:
    """Read a chunk; an event of a newer release is a custom one of its name."""
    body = decode_object(raw)
    kind = _EVENT_TYPES.get(body.pop("type"), EventType.CUSTOM)
    known = {name: body[name] for name in _EVENT_FIELDS if name in body}
    return Chunk(attempt=attempt, index=index, event=ChatEvent(type=kind, **known))


def encode_outcome(outcome: Outcome) -> bytes:
    """Give the text of an outcome, its fence apart.

    Raises:
        ValueError: the reply's `extra` is not JSON.
    """
    body = _payload_body(outcome.payload)
    body |= {"status": outcome.status_code, "attempt": outcome.attempt}
    if outcome.chunk_count:
        body["chunks"] = outcome.chunk_count
    return encode_json(body, name="outcome")


def decode_outcome(raw: bytes) -> Outcome:
    """Read an entry of the ledger, `<fence>:<outcome>`, or `0:<attempt>` of a cancelled turn."""
    fence, _, rest = raw.partition(b":")
    if fence == b"0":
        failure = Failure.from_error(TurnCancelledError())
        return Outcome(payload=failure, status_code=failure.status_code, attempt=int(rest), fence=0)
    body = decode_object(rest)
    return Outcome(
        payload=_payload(body),
        status_code=body["status"],
        attempt=body["attempt"],
        fence=int(fence),
        chunk_count=body.get("chunks", 0),
    )


def encode_record(record: TurnRecord) -> bytes:
    """Give the text of a turn of the history.

    Raises:
        ValueError: its items are not JSON.
    """
    body: dict[str, Any] = {
        "id": record.request_id,
        "prompt": record.prompt,
        "reply": record.reply,
        "agent": record.agent,
        "at": record.at,
    }
    if record.items:
        body["items"] = record.items
    return encode_json(body, name="record")


def decode_record(raw: bytes) -> TurnRecord:
    """Read what `encode_record` gave; every call makes new items."""
    body = decode_object(raw)
    return TurnRecord(
        request_id=body["id"],
        prompt=body["prompt"],
        reply=body["reply"],
        agent=body["agent"],
        at=body["at"],
        items=tuple(body.get("items", ())),
    )


def _payload_body(payload: ChatReply | Failure) -> dict[str, Any]:
    if isinstance(payload, ChatReply):
        body: dict[str, Any] = {"result": payload.result}
        if payload.extra:
            body["extra"] = payload.extra
        return body
    failure: dict[str, Any] = {
        "code": payload.code,
        "message": payload.message,
        "status": payload.status_code,
        "retry": payload.retry.value,
    }
    if payload.retry_after is not None:
        failure["retry_after"] = payload.retry_after
    if payload.field:
        failure["field"] = payload.field
    return {"failure": failure}


def _payload(body: dict[str, Any]) -> ChatReply | Failure:
    failure = body.get("failure")
    if failure is None:
        return ChatReply(result=body["result"], extra=body.get("extra", {}))
    return Failure(
        code=failure["code"],
        message=failure["message"],
        status_code=failure["status"],
        retry=RetryHint(failure["retry"]),
        retry_after=failure.get("retry_after"),
        field=failure.get("field", ""),
    )
