"""The protocol: values that travel between services, and their ids.  No I/O, no asyncio."""

from turnline.protocol.chat import Attachment, ChatReply, ChatRequest, JsonObject, TurnRecord
from turnline.protocol.chunk import BEGINNING, ChatEvent, Chunk, EventType, Position
from turnline.protocol.envelope import DeliveryMode, Envelope, Payload, TraceContext, Unread
from turnline.protocol.failure import Failure
from turnline.protocol.ids import (
    MAX_ID_BYTES,
    ReplyKey,
    SessionKey,
    check_id,
    digest,
    new_request_id,
)

__all__ = [
    "BEGINNING",
    "MAX_ID_BYTES",
    "Attachment",
    "ChatEvent",
    "ChatReply",
    "ChatRequest",
    "Chunk",
    "DeliveryMode",
    "Envelope",
    "EventType",
    "Failure",
    "JsonObject",
    "Payload",
    "Position",
    "ReplyKey",
    "SessionKey",
    "TraceContext",
    "TurnRecord",
    "Unread",
    "check_id",
    "digest",
    "new_request_id",
]
