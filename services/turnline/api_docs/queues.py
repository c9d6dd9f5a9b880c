"""JSON Schemas of what travels on queues: bytes, headers, bodies and attributes.

Which headers and attributes there are is asked of the code that writes them.
"""

import json
from collections.abc import Mapping
from dataclasses import fields

from turnline.frontdoor.schemas import failure_properties
from turnline.protocol import (
    ChatEvent,
    ChatReply,
    Chunk,
    DeliveryMode,
    Envelope,
    EventType,
    TraceContext,
)
from turnline.protocol.attributes import PACKED, write_attributes
from turnline.protocol.codec import PROTOBUF_CONTENT_TYPE, headers
from turnline.protocol.json_schema import Form, JsonSchema, SchemaMaker, ref
from turnline.v1 import chat_pb2, envelope_pb2

PROTO_PREFIX = "proto."

_EVERYTHING = Envelope(
    request_id="r",
    session_id="s",
    scope="u",
    user_id="u",
    delivery_mode=DeliveryMode.PUSH_STREAM,
    status_code=200,
    chunks=(Chunk(attempt=1, index=0, event=ChatEvent(type=EventType.TEXT_DELTA, content="x")),),
    payload=ChatReply(result="x"),
    chunk_count=1,
    attempt=1,
    fence=1,
    deadline=1.0,
    enqueued_at=1.0,
    trace=TraceContext(traceparent="t", tracestate="t"),
)
_PLACE: JsonSchema = {"type": "integer", "minimum": 0}
_JSON_CHUNK: JsonSchema = {
    "type": "object",
    "required": ["event", "attempt", "index"],
    "properties": {
        "delta": {"type": "string"},
        "event": ref("Event"),
        "attempt": _PLACE,
        "index": _PLACE,
    },
}
_DIGITS: JsonSchema = {"type": "string", "pattern": r"^\d+$"}


def queue_schemas(maker: SchemaMaker) -> dict[str, JsonSchema]:
    """Give the schemas by name, beside those of `client_schemas`."""
    proto = SchemaMaker(form=Form.PROTO, comments=maker.comments, prefix=PROTO_PREFIX)
    return {
        **proto.reachable(envelope_pb2.Envelope),
        "RequestEnvelope": _envelope("A turn to run.", [["request"]]),
        "AnswerEnvelope": _envelope(
            "A piece of a turn's answer, or its end.", [["reply"], ["failure"], ["chunks"]]
        ),
        "BareRequest": {
            "description": (
                "A turn as somebody without Turnline sends it.  Ids may stand in headers instead."
            ),
            "allOf": [ref("ChatRequest")],
        },
        "JsonAnswer": _json_answer(maker),
        "Metadata": _metadata(maker),
    }


def header_properties(maker: SchemaMaker) -> dict[str, JsonSchema]:
    """Give the headers of a message whose bytes are an envelope; all are texts."""
    found = {name: _header(maker, name) for name in headers(_EVERYTHING) if name != "dedup_id"}
    return found | {"content-type": {"type": "string", "const": PROTOBUF_CONTENT_TYPE}}


def attribute_properties(maker: SchemaMaker) -> dict[str, JsonSchema]:
    """Give the message attributes of SQS; all are texts."""
    names = write_attributes(_EVERYTHING, kind="reply")
    return {name: _header(maker, name) for name in names if name != PACKED} | {
        PACKED: {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": ref("Metadata"),
            "description": "All other metadata of the envelope, as a JSON object.",
        }
    }


def _header(maker: SchemaMaker, name: str) -> JsonSchema:
    known = [part.name for part in fields(TraceContext)]
    message = envelope_pb2.TraceContext if name in known else envelope_pb2.Envelope
    found = maker.properties(message, only=(name,)).get(name, {})
    shape = _DIGITS if found.get("type") == "integer" else {"type": "string"}
    return {**shape, **{key: found[key] for key in found if key == "description"}}


def _envelope(text: str, one_of: list[list[str]]) -> JsonSchema:
    return {
        "description": f"{text}  The bytes are a `turnline.v1.Envelope`; this is its ProtoJSON.",
        "allOf": [ref(f"{PROTO_PREFIX}Envelope")],
        "required": ["request_id", "session_id"],
        "anyOf": [{"required": names} for names in one_of],
    }


def _json_answer(maker: SchemaMaker) -> JsonSchema:
    reply = maker.properties(chat_pb2.ChatReply, only=("result",))
    return {
        "type": "object",
        "description": (
            "A piece of an answer (`event`), several (`chunks`), or its end (`result` or `error`)."
        ),
        "required": ["session_id"],
        "properties": {
            "session_id": {"type": "string", "minLength": 1},
            **reply,
            **failure_properties(maker),
            "status_code": {"type": "integer", "minimum": 400, "maximum": 599},
            **_JSON_CHUNK["properties"],
            "chunks": {"type": "array", "items": _JSON_CHUNK},
            "done": {"type": "boolean", "description": "Whether this is the end of a stream."},
        },
        "anyOf": [{"required": [name]} for name in ("result", "error", "event", "chunks")],
    }


def _metadata(maker: SchemaMaker) -> JsonSchema:
    packed: Mapping[str, object] = json.loads(write_attributes(_EVERYTHING, kind="reply")[PACKED])
    known = maker.properties(envelope_pb2.Envelope)
    known |= maker.properties(envelope_pb2.TraceContext)
    known |= {
        "kind": {
            "enum": ["request", "reply", "failure", "chunks"],
            "description": "What the body is.",
        },
        "streamed": {"type": "integer", "minimum": 1, "description": "Pieces in the body."},
    }
    names = [*packed, "attributes"]
    return {
        "type": "object",
        "description": "What is absent is empty, or 0.  Times are seconds since the epoch.",
        "required": ["kind"],
        "properties": {name: known[name] for name in names},
    }
