"""Envelopes as bytes: the Protobuf form of `proto/turnline/v1/envelope.proto`.

On the hot path of every hop.  Bytes are deterministic: equal envelopes have equal bytes, within
one version of the Protobuf library.

Newer minor versions: fields and delivery modes this version does not know are carried in
`Envelope.unread` and written again; event types become custom events that keep their name; failure
codes are text.  Unknown fields of list items (chunks, attachments) are dropped, so what is added
there must be safe to lose.
"""

from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from turnline.errors import AgentFailedError, InvalidRequestError, TurnlineError, UndecodableError
from turnline.protocol.chat import ChatReply, ChatRequest
from turnline.protocol.envelope import (
    NOTHING_UNREAD,
    DeliveryMode,
    Envelope,
    Payload,
    TraceContext,
    Unread,
)
from turnline.protocol.failure import Failure
from turnline.protocol.ids import check_id
from turnline.protocol.messages import (
    read_chunk,
    read_failure,
    read_reply,
    read_request,
    read_time,
    write_chunk,
    write_failure,
    write_reply,
    write_request,
    write_time,
)
from turnline.v1 import envelope_pb2 as pb

PROTOBUF_CONTENT_TYPE = "application/x-protobuf"

_MODE_NUMBERS = {mode: getattr(pb, f"DELIVERY_MODE_{mode.name}") for mode in DeliveryMode}
_MODES = {number: mode for mode, number in _MODE_NUMBERS.items()}
_NO_TRACE = TraceContext()


def encode(envelope: Envelope) -> bytes:
    """Give the bytes of an envelope.

    Raises:
        InvalidRequestError: a request holds what Protobuf cannot carry (see `json_value`).
        AgentFailedError: a chunk or reply does.
        ValueError: a number or time is out of range.
    """
    message = pb.Envelope()
    if envelope.unread is not NOTHING_UNREAD:
        # First, so that what this version knows has the last word.
        message.MergeFromString(envelope.unread.envelope)
    try:
        _write_metadata(envelope, message)
        for chunk in envelope.chunks:
            write_chunk(chunk, message.chunks.add())
        if envelope.payload is not None:
            _write_payload(envelope.payload, envelope.unread.payload, message)
    except InvalidRequestError as error:
        raise unsendable(envelope, error.message) from error
    except UnicodeEncodeError as error:
        raise unsendable(envelope, "text that is not valid Unicode") from error
    return message.SerializeToString(deterministic=True)


def decode(raw: bytes) -> Envelope:
    """Read an envelope from its bytes.

    Raises:
        UndecodableError: the bytes are no envelope, lack an id, or carry a payload of a kind or
            type this version does not know; says which, without content.
    """
    try:
        message = pb.Envelope.FromString(raw)
    except DecodeError as error:
        raise UndecodableError("not a Protobuf envelope") from error
    try:
        return _read(message)
    except InvalidRequestError as error:
        raise UndecodableError(f"unusable envelope: {error.message}") from error


def headers(envelope: Envelope) -> dict[str, str]:
    """Mirror an envelope's metadata as message headers, for brokers, operators and filters.

    The bytes stay the truth.  Empty values are left out, as are values that no header can hold
    (control characters, blanks at either end).
    """
    found = {
        "content-type": PROTOBUF_CONTENT_TYPE,
        "request_id": envelope.request_id,
        "user_id": envelope.user_id,
        "scope": envelope.scope,
        "status_code": str(envelope.status_code or ""),
        "attempt": str(envelope.attempt or ""),
        "dedup_id": envelope.dedup_id,
        "traceparent": envelope.trace.traceparent,
        "tracestate": envelope.trace.tracestate,
    }
    return {
        name: value
        for name, value in found.items()
        if value and value.isprintable() and value.strip() == value
    }


def unsendable(envelope: Envelope, reason: str) -> TurnlineError:
    """Make the error for an envelope that holds what no wire format can carry.

    The request's author is to blame, or the agent when it is an answer; `reason` says for what.
    """
    if isinstance(envelope.payload, ChatRequest):
        return InvalidRequestError(f"unusable request: {reason}", field="payload")
    return AgentFailedError(f"The agent's answer can't be sent: {reason}")


def _write_metadata(envelope: Envelope, message: pb.Envelope) -> None:
    message.request_id = envelope.request_id
    message.session_id = envelope.session_id
    if envelope.scope:
        message.scope = envelope.scope
    if envelope.user_id:
        message.user_id = envelope.user_id
    if envelope.delivery_mode:
        message.delivery_mode = _MODE_NUMBERS[envelope.delivery_mode]
    if envelope.status_code:
        message.status_code = envelope.status_code
    if envelope.chunk_count:
        message.chunk_count = envelope.chunk_count
    if envelope.attempt:
        message.attempt = envelope.attempt
    if envelope.fence:
        message.fence = envelope.fence
    if envelope.deadline:
        write_time(envelope.deadline, message.deadline)
    if envelope.enqueued_at:
        write_time(envelope.enqueued_at, message.enqueued_at)
    if envelope.trace.traceparent:
        message.trace.traceparent = envelope.trace.traceparent
    if envelope.trace.tracestate:
        message.trace.tracestate = envelope.trace.tracestate
    if envelope.attributes:
        message.attributes.update(envelope.attributes)


def _write_payload(payload: Payload, unread: bytes, message: pb.Envelope) -> None:
    match payload:
        case ChatRequest():
            message.request.SetInParent()
            if unread:
                message.request.MergeFromString(unread)
            write_request(payload, message.request)
        case ChatReply():
            message.reply.SetInParent()
            if unread:
                message.reply.MergeFromString(unread)
            write_reply(payload, message.reply)
        case Failure():
            message.failure.SetInParent()
            if unread:
                message.failure.MergeFromString(unread)
            write_failure(payload, message.failure)


def _read(message: pb.Envelope) -> Envelope:
    status_code = message.status_code
    if status_code and not 100 <= status_code <= 599:
        raise UndecodableError("status_code is no HTTP status")
    mode = _MODES.get(message.delivery_mode)
    payload, payload_unread = _read_payload(message)
    unread = NOTHING_UNREAD
    if payload_unread or mode is None or len(UnknownFieldSet(message)):
        unread = Unread(envelope=_unread(message, mode), payload=payload_unread)
    if payload is None and not message.chunks:
        raise UndecodableError("neither chunks nor a payload of a kind this version knows")
    return Envelope(
        request_id=check_id(message.request_id, field="request_id"),
        session_id=check_id(message.session_id, field="session_id"),
        scope=message.scope,
        user_id=message.user_id,
        delivery_mode=mode or DeliveryMode.UNSPECIFIED,
        status_code=status_code,
        chunks=tuple(map(read_chunk, message.chunks)) if message.chunks else (),
        payload=payload,
        chunk_count=message.chunk_count,
        attempt=message.attempt,
        fence=message.fence,
        deadline=read_time(message.deadline, field="deadline"),
        enqueued_at=read_time(message.enqueued_at, field="enqueued_at"),
        trace=_read_trace(message.trace) if message.HasField("trace") else _NO_TRACE,
        attributes=dict(message.attributes) if message.attributes else {},
        unread=unread,
    )


def _read_payload(message: pb.Envelope) -> tuple[Payload | None, bytes]:
    match message.WhichOneof("payload"):
        case "request":
            return read_request(message.request), _unknown_fields(message.request)
        case "reply":
            return read_reply(message.reply), _unknown_fields(message.reply)
        case "failure":
            return read_failure(message.failure), _unknown_fields(message.failure)
        case _:
            return None, b""


def _read_trace(message: pb.TraceContext) -> TraceContext:
    return TraceContext(traceparent=message.traceparent, tracestate=message.tracestate)


def _unread(message: pb.Envelope, mode: DeliveryMode | None) -> bytes:
    unknown = _unknown_fields(message)
    if mode is None:
        unknown += pb.Envelope(delivery_mode=message.delivery_mode).SerializeToString()
    return unknown


def _unknown_fields(message: Message) -> bytes:
    if not len(UnknownFieldSet(message)):
        return b""
    rest = type(message)()
    rest.CopyFrom(message)
    for field, _ in rest.ListFields():
        rest.ClearField(field.name)
    return rest.SerializeToString(deterministic=True)
