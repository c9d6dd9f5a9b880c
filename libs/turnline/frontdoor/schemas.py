"""JSON Schemas of what clients send and see, on every surface that speaks JSON.

Made from the protocol's descriptors; what stands here in full is how the JSON of the guide differs
from them.  `frames.py` makes what these describe.
"""

from collections.abc import Mapping
from types import MappingProxyType

from google.protobuf.message import Message

from turnline.errors import CODES
from turnline.protocol.chat_body import REQUEST_TYPES
from turnline.protocol.json_schema import Form, JsonSchema, SchemaMaker, ref
from turnline.v1 import chat_pb2, chat_service_pb2, chunk_pb2, failure_pb2

POSITION: JsonSchema = {"type": "string", "pattern": r"^\d{1,10}-(-1|\d{1,10})$"}
"""A place in a stream: `<attempt>-<index>`."""

_NO_COMMENTS: Mapping[str, str] = MappingProxyType({})
_ID: JsonSchema = {"minLength": 1, "maxLength": 256}


def client_maker(comments: Mapping[str, str] = _NO_COMMENTS) -> SchemaMaker:
    """Give what makes these schemas; see `SchemaMaker.comments`, empty leaves descriptions out."""
    return SchemaMaker(form=Form.OWN, comments=comments)


def client_schemas(maker: SchemaMaker) -> dict[str, JsonSchema]:
    """Give the schemas by name; they refer to each other as components of one document."""
    return {
        "ChatRequest": _chat_request(maker),
        "File": _attachment(maker, "file_data"),
        "Image": _attachment(maker, "image_data"),
        "Resume": _all_optional(maker, chat_pb2.Resume),
        "Decision": _decision(maker),
        "Schedule": _schedule(maker),
        "TypedInput": {
            "type": "object",
            "required": ["type"],
            "properties": {"type": {"enum": sorted(REQUEST_TYPES)}},
        },
        "ChatReply": _chat_reply(maker),
        "Error": {
            "type": "object",
            "required": ["detail"],
            "properties": {"detail": ref("ErrorDetail")},
            "additionalProperties": False,
        },
        "ErrorDetail": _error_detail(maker),
        "Event": _event(maker),
        "Chunk": _chunk(maker),
        "Notice": _notice(maker),
        "StreamEnd": _stream_end(maker),
        "StreamFrame": {"oneOf": [ref("Chunk"), ref("Notice"), ref("StreamEnd")]},
    }


def turn_ids(maker: SchemaMaker) -> dict[str, JsonSchema]:
    """Give the properties `session_id` and `request_id` of an answer."""
    return _ids(maker, chat_service_pb2.SubmitResponse)


def failure_properties(maker: SchemaMaker) -> dict[str, JsonSchema]:
    """Give the properties by which a failure is told, in an error's detail or flat in a frame."""
    fields = maker.properties(
        failure_pb2.Failure, omit=("status_code",), names={"message": "error"}
    )
    fields["code"] = {**fields["code"], "examples": sorted(code.value for code in CODES)}
    return {name: fields[name] for name in ("error", "code", "retry", "retry_after", "field")}


def _ids(maker: SchemaMaker, message: type[Message]) -> dict[str, JsonSchema]:
    found = maker.properties(message, only=("session_id", "request_id"))
    return {name: {**schema, **_ID} for name, schema in found.items()}


def _chat_request(maker: SchemaMaker) -> JsonSchema:
    message = chat_pb2.ChatRequest
    properties = maker.properties(message, omit=("extra",))
    properties["files"] = {**properties["files"], "items": ref("File")}
    properties["images"] = {**properties["images"], "items": ref("Image")}
    properties["requests"] = {**properties["requests"], "items": ref("TypedInput")}
    optional = {name: _nullable(schema) for name, schema in properties.items() if name != "prompt"}
    schema: JsonSchema = {
        "type": "object",
        "required": ["session_id"],
        "anyOf": [{"required": [name]} for name in ("prompt", "resume", "requests")],
        "properties": {
            "prompt": properties["prompt"],
            **_ids(maker, chat_service_pb2.SubmitRequest),
            **optional,
        },
    }
    return maker.described(message, schema)


def _attachment(maker: SchemaMaker, data: str) -> JsonSchema:
    message = chat_pb2.Attachment
    properties = maker.properties(message, names={"data": data})
    for name in ("name", "mime_type"):
        properties[name] = _nullable(properties[name])
    schema: JsonSchema = {"type": "object", "required": [data], "properties": properties}
    return maker.described(message, schema)


def _decision(maker: SchemaMaker) -> JsonSchema:
    schema = _all_optional(maker, chat_pb2.Decision)
    schema["properties"] |= maker.properties(chat_pb2.Decision, only=("id",))
    return {**schema, "required": ["id"]}


def _schedule(maker: SchemaMaker) -> JsonSchema:
    schema = _all_optional(maker, chat_pb2.Schedule)
    return {**schema, "anyOf": [{"required": ["at"]}, {"required": ["cron"]}]}


def _all_optional(maker: SchemaMaker, message: type[Message]) -> JsonSchema:
    properties = maker.properties(message, omit=("extra",))
    schema: JsonSchema = {
        "type": "object",
        "properties": {name: _nullable(found) for name, found in properties.items()},
    }
    return maker.described(message, schema)


def _nullable(schema: JsonSchema) -> JsonSchema:
    if "type" in schema:
        return {**schema, "type": [schema["type"], "null"]}
    if "enum" in schema:
        return {**schema, "enum": [*schema["enum"], None]}
    if "$ref" in schema:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return {"anyOf": [{"$ref": schema["$ref"]}, {"type": "null"}], **rest}
    return schema


def _chat_reply(maker: SchemaMaker) -> JsonSchema:
    message = chat_pb2.ChatReply
    properties = maker.properties(message, omit=("extra",))
    schema: JsonSchema = {
        "type": "object",
        "required": ["result", "session_id", "request_id"],
        "properties": {**properties, **turn_ids(maker)},
    }
    return maker.described(message, schema)


def _error_detail(maker: SchemaMaker) -> JsonSchema:
    schema: JsonSchema = {
        "type": "object",
        "required": ["error", "code", "retry"],
        "properties": {
            **failure_properties(maker),
            "message": {"type": "string", "description": "More words where `error` is a name."},
            "session_id": {"type": "string"},
            "request_id": {"type": "string"},
        },
        "additionalProperties": False,
    }
    return maker.described(failure_pb2.Failure, schema)


def _event(maker: SchemaMaker) -> JsonSchema:
    message = chunk_pb2.ChatEvent
    properties = maker.properties(message, omit=("data", "type_name"))
    # Open: an application's own events, and those of a newer version, have types of their own.
    known = properties["type"].pop("enum")
    properties["type"] |= {"type": "string", "minLength": 1, "examples": known}
    properties["delta"] = {
        "type": "string",
        "description": "Part of a call's arguments; `tool_call_args` has it instead of `content`.",
    }
    schema: JsonSchema = {"type": "object", "required": ["type"], "properties": properties}
    return maker.described(message, schema)


def _chunk(maker: SchemaMaker) -> JsonSchema:
    message = chunk_pb2.Chunk
    place = maker.properties(message, only=("attempt", "index"))
    schema: JsonSchema = {
        "type": "object",
        "required": ["event", "done", "session_id", "request_id", "attempt", "index"],
        "properties": {
            "delta": {"type": "string", "description": "Text this piece adds to the answer."},
            "event": {
                "allOf": [ref("Event")],
                "not": {"properties": {"type": {"enum": ["gap", "restart"]}}},
            },
            "done": {"const": False},
            **turn_ids(maker),
            **place,
        },
    }
    return maker.described(message, schema)


def _notice(maker: SchemaMaker) -> JsonSchema:
    events = {"gap": chunk_pb2.Gap, "restart": chat_service_pb2.Restart}
    return {
        "type": "object",
        "description": "What a reader must know and can't see from the pieces.",
        "required": ["event", "done", "session_id", "request_id", "attempt"],
        "properties": {
            "event": {"oneOf": [_notice_event(maker, *event) for event in events.items()]},
            "done": {"const": False},
            **turn_ids(maker),
            **maker.properties(chunk_pb2.Chunk, only=("attempt",)),
        },
    }


def _notice_event(maker: SchemaMaker, kind: str, message: type[Message]) -> JsonSchema:
    # The attempt a gap belongs to is the frame's own.
    omit = ("attempt",) if kind == "gap" else ()
    fields = maker.properties(message, omit=omit)
    schema: JsonSchema = {
        "type": "object",
        "required": ["type", *fields],
        "properties": {"type": {"const": kind}, **fields},
    }
    return maker.described(message, schema)


def _stream_end(maker: SchemaMaker) -> JsonSchema:
    end = maker.properties(chat_pb2.TurnEnd, only=("status_code", "attempt"))
    return {
        "type": "object",
        "description": (
            "Comes once and last.  `result` is there when the text can't be had from the pieces, "
            "`error` with `code` and `retry` when there is no answer."
        ),
        "required": ["done", "status_code", "session_id", "request_id", "attempt", "index"],
        "properties": {
            "done": {"const": True},
            **maker.properties(chat_pb2.ChatReply, only=("result",)),
            **failure_properties(maker),
            **end,
            **turn_ids(maker),
            "index": {"type": "integer", "minimum": 0, "description": "How many pieces it had."},
        },
    }
