"""Envelopes as the guide's JSON bodies with metadata in message attributes.

The body is what the guide shows (a chat body, a reply, an error, a stream chunk); see `attributes`
for the rest.  Every consumer takes such a body with no metadata as well: a scheduler cannot set
attributes, so `request_id` and `user_id` are then looked for in the body, and what was found is
metadata of the envelope from there on.

JSON is read by `parse_chat_body` at client surfaces and by `decode_*` on queues.  A request off a
queue is not checked against the rules of a chat body: use `check_request`, so that the caller is
answered instead of the message being buried.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from turnline.errors import CODES, Code, InvalidRequestError, RetryHint, UndecodableError
from turnline.protocol.attributes import Metadata, dump_json, read_attributes, write_attributes
from turnline.protocol.chat import ChatReply, ChatRequest
from turnline.protocol.chat_body import (
    ChatBody,
    chat_body_object,
    check_request,
    parse_chat_body,
    read_chat_body,
)
from turnline.protocol.chunk import ChatEvent, Chunk, EventType
from turnline.protocol.codec import decode, unsendable
from turnline.protocol.envelope import Envelope, Payload
from turnline.protocol.failure import Failure
from turnline.protocol.ids import check_id
from turnline.protocol.json_value import check_json_object, check_text, malformed

__all__ = [
    "JSON_CONTENT_TYPE",
    "ChatBody",
    "check_request",
    "decode_any",
    "decode_json_body",
    "encode_json_body",
    "parse_chat_body",
]

JSON_CONTENT_TYPE = "application/json"

_ANSWER_KEYS = frozenset({"result", "error", "done", "event", "chunks"})
_REQUEST_KEYS = frozenset({"prompt", "resume", "requests"})
_EVENT_FIELDS = ("message_id", "role", "tool_call_id", "name")
_EVENT_TYPES = {kind.value: kind for kind in EventType}
_RETRY_HINTS = {hint.value: hint for hint in RetryHint}
_LARGEST_INDEX = 2**32 - 1


def encode_json_body(envelope: Envelope) -> tuple[bytes, dict[str, str]]:
    """Give an envelope's JSON body and its message attributes, at most 10 of them.

    `Envelope.unread` is left behind: it belongs to the Protobuf form.

    Raises:
        InvalidRequestError: a request holds what is not JSON, or JSON out of bounds.
        AgentFailedError: a chunk or reply does.
        ValueError: a time is out of range.
    """
    try:
        body = _body(envelope)
        return dump_json(body), write_attributes(envelope, kind=_kind(envelope.payload))
    except InvalidRequestError as error:
        raise unsendable(envelope, error.message) from error
    except TypeError as error:
        raise unsendable(envelope, "text that is not valid Unicode") from error


def decode_json_body(raw: bytes, attributes: Mapping[str, str]) -> Envelope:
    """Read an envelope from a JSON body and message attributes, of which there may be none.

    Raises:
        UndecodableError: no JSON object, a field of a wrong type, or an id that is in neither
            place; says which, without content.
    """
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise UndecodableError("not JSON") from error
    if not isinstance(body, dict):
        raise UndecodableError("not a JSON object")
    try:
        return _read(body, read_attributes(attributes))
    except InvalidRequestError as error:
        raise UndecodableError(f"unusable message: {error.message}") from error


def decode_any(raw: bytes, headers: Mapping[str, str]) -> Envelope:
    """Read an envelope in either form, by its `content-type` header or else by its first byte.

    Raises:
        UndecodableError: see `decode_json_body` and `codec.decode`.
    """
    content_type = next((v for k, v in headers.items() if k.lower() == "content-type"), "").lower()
    if "protobuf" in content_type:
        return decode(raw)
    if "json" in content_type or _looks_like_json(raw):
        return decode_json_body(raw, _without_broker_headers(headers))
    return decode(raw)


def _looks_like_json(raw: bytes) -> bool:
    # A blank can begin a Protobuf envelope too (a line feed is the tag of field 1), a brace can't.
    if raw[:1] == b"{":
        return True
    if raw[:64].lstrip()[:1] != b"{":
        return False
    try:
        orjson.loads(raw)
    except orjson.JSONDecodeError:
        return False
    return True


def _without_broker_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in headers.items()
        if name.lower() not in ("content-type", "dedup_id")
        and not name.lower().startswith(("nats-", "ak-"))
    }


def _kind(payload: Payload | None) -> str:
    match payload:
        case ChatRequest():
            return "request"
        case ChatReply():
            return "reply"
        case Failure():
            return "failure"
        case None:
            return "chunks"


# --- writing ------------------------------------------------------------------------------------


def _body(envelope: Envelope) -> dict[str, Any]:
    payload, session_id = envelope.payload, envelope.session_id
    if isinstance(payload, ChatRequest):
        return chat_body_object(payload, session_id=session_id)
    body = _chunks_object(envelope) if envelope.chunks else {}
    if isinstance(payload, Failure):
        body |= _failure_object(payload)
    body["session_id"] = session_id
    if isinstance(payload, ChatReply):
        extra = check_json_object(payload.extra, field="extra")
        body = {**extra, **body, "result": payload.result}
    return body


def _chunks_object(envelope: Envelope) -> dict[str, Any]:
    chunks = [_chunk_object(chunk) for chunk in envelope.chunks]
    if len(chunks) == 1 and envelope.payload is None:
        return {**chunks[0], "done": False}
    return {"chunks": chunks, "done": envelope.payload is not None}


def _chunk_object(chunk: Chunk) -> dict[str, Any]:
    check_json_object(chunk.event.data, field="data")
    body: dict[str, Any] = {"delta": chunk.delta} if chunk.delta else {}
    body["event"] = chunk.event.to_json()
    body["attempt"] = chunk.attempt
    body["index"] = chunk.index
    return body


def _failure_object(failure: Failure) -> dict[str, Any]:
    body: dict[str, Any] = {
        "error": failure.message,
        "code": failure.code,
        "retry": failure.retry.value,
        "status_code": failure.status_code,
    }
    if failure.retry_after is not None:
        body["retry_after"] = failure.retry_after
    if failure.field:
        body["field"] = failure.field
    return body


# --- reading ------------------------------------------------------------------------------------


def _read(body: dict[str, Any], metadata: Metadata) -> Envelope:
    status_code = metadata.whole("status_code")
    if status_code and not 100 <= status_code <= 599:
        raise UndecodableError("status_code is no HTTP status")
    chunks: tuple[Chunk, ...] = ()
    payload: Payload | None
    if _is_request(body, metadata):
        parsed = read_chat_body(body)
        payload, session_id = parsed.request, parsed.session_id
    else:
        chunks = _read_chunks(body, metadata)
        payload = _read_answer(body, metadata, status_code)
        session_id = _text(body, "session_id")
    if payload is None and not chunks:
        raise UndecodableError("neither chunks nor a payload")
    return Envelope(
        request_id=check_id(_id(body, metadata, "request_id"), field="request_id"),
        session_id=check_id(session_id, field="session_id"),
        scope=metadata.text("scope"),
        user_id=_id(body, metadata, "user_id"),
        delivery_mode=metadata.delivery_mode(),
        status_code=status_code,
        chunks=chunks,
        payload=payload,
        chunk_count=metadata.whole("chunk_count"),
        attempt=metadata.whole("attempt"),
        fence=metadata.whole("fence"),
        deadline=metadata.moment("deadline"),
        enqueued_at=metadata.moment("enqueued_at"),
        trace=metadata.trace(),
        attributes=metadata.passed_through(),
    )


def _is_request(body: dict[str, Any], metadata: Metadata) -> bool:
    kind = metadata.text("kind")
    if kind in ("reply", "failure", "chunks"):
        return False
    if kind and kind != "request":
        raise UndecodableError("a body of a kind this version does not know")
    return bool(kind) or not _REQUEST_KEYS.isdisjoint(body) or _ANSWER_KEYS.isdisjoint(body)


def _id(body: dict[str, Any], metadata: Metadata, name: str) -> str:
    found = metadata.text(name)
    if found or not metadata.bare:
        return found
    return _text(body, name)


def _text(body: Mapping[str, Any], name: str) -> str:
    value = body.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise malformed(f"{name} must be a string", name)
    return check_text(value, field=name)


def _read_chunks(body: dict[str, Any], metadata: Metadata) -> tuple[Chunk, ...]:
    if not (metadata.bare or metadata.whole("streamed")):
        return ()
    if "chunks" not in body:
        return (_read_chunk(body),) if "event" in body else ()
    items = body["chunks"]
    if not isinstance(items, list):
        raise malformed("chunks must be a list", "chunks")
    return tuple(_read_chunk(item) for item in items)


def _read_chunk(item: object) -> Chunk:
    if not isinstance(item, dict):
        raise malformed("a chunk must be an object", "chunks")
    attempt, index = item.get("attempt"), item.get("index")
    if not (type(attempt) is int and 1 <= attempt <= _LARGEST_INDEX):
        raise malformed("a chunk must hold its attempt", "attempt")
    if not (type(index) is int and 0 <= index <= _LARGEST_INDEX):
        raise malformed("a chunk must hold its index", "index")
    return Chunk(attempt=attempt, index=index, event=_read_event(item.get("event")))


def _read_event(item: object) -> ChatEvent:
    data = dict(check_json_object(item, field="event"))
    kind = data.get("type")
    if not isinstance(kind, str) or not kind:
        raise malformed("event has no type", "event.type")
    event_type = _EVENT_TYPES.get(kind)
    if event_type is None:
        # The type of a newer version stays in `data`, and so is what clients see.
        event_type = EventType.CUSTOM
    else:
        del data["type"]
    content_key = "delta" if event_type is EventType.TOOL_CALL_ARGS else "content"
    content = data.pop(content_key) if isinstance(data.get(content_key), str) else ""
    texts = {name: data.pop(name) for name in _EVENT_FIELDS if isinstance(data.get(name), str)}
    return ChatEvent(type=event_type, content=content, data=data, **texts)


def _read_answer(
    body: dict[str, Any], metadata: Metadata, status_code: int
) -> ChatReply | Failure | None:
    match metadata.text("kind") or _guessed_kind(body):
        case "reply":
            return _read_reply(body, metadata)
        case "failure":
            return _read_failure(body, status_code)
        case _:
            return None


def _guessed_kind(body: dict[str, Any]) -> str:
    if "result" in body:
        return "reply"
    if "error" in body:
        return "failure"
    # The guide's last chunk says no more than that the stream is over.
    return "reply" if body.get("done") is True else "chunks"


def _read_reply(body: dict[str, Any], metadata: Metadata) -> ChatReply:
    fields = {"result", "session_id"}
    if metadata.bare:
        fields |= {"request_id", "user_id", "done", "chunks"}
    elif metadata.whole("streamed"):
        fields |= {"done", "chunks"}
    extra = {key: value for key, value in body.items() if key not in fields}
    return ChatReply(result=_text(body, "result"), extra=check_json_object(extra, field="extra"))


def _read_failure(body: dict[str, Any], status_code: int) -> Failure:
    code = _text(body, "code") or Code.INTERNAL.value
    status = body.get("status_code", status_code)
    if type(status) is not int or not 400 <= status <= 599:
        status = CODES[Code(code)].http_status if code in CODES else 500
    after = body.get("retry_after")
    if after is not None and (type(after) not in (int, float) or not 0 <= after < 1e9):
        raise malformed("retry_after must be a number of seconds", "retry_after")
    return Failure(
        code=code,
        message=_text(body, "error"),
        status_code=status,
        retry=_RETRY_HINTS.get(_text(body, "retry"), RetryHint.NEVER),
        retry_after=after,
        field=_text(body, "field"),
    )
