"""The AsyncAPI 3.0 document of the queues and of the client sockets."""

from collections.abc import Iterable, Mapping
from typing import Any

from turnline.api_docs.frames import CLIENT_FRAMES, SERVER_FRAMES, frame_schemas
from turnline.api_docs.queues import attribute_properties, header_properties, queue_schemas
from turnline.config import Settings
from turnline.frontdoor.schemas import client_maker, client_schemas
from turnline.gateway.routes import SOCKET_PATH
from turnline.protocol.codec import PROTOBUF_CONTENT_TYPE
from turnline.protocol.json_schema import JsonSchema, SchemaMaker, ref

_JSON = "application/json"
_BINARY = PROTOBUF_CONTENT_TYPE
_SIDES = ("input", "output")
_REST_ONLY = ("ChatReply", "Error", "ErrorDetail")
_DESCRIPTION = """\
Every message between Turnline's services, and every frame between the gateway and its clients.
Names in addresses are defaults; settings change them.

A consumer of a queue takes three forms: Protobuf with headers, the guide's JSON with attributes,
and a plain JSON chat body that brings no metadata (a scheduler's).  Unknown fields, event types and
failure codes are passed on, never refused.  What is no envelope becomes a dead letter.
"""


def asyncapi_document(comments: Mapping[str, str], *, version: str) -> JsonSchema:
    """Make the document.

    Args:
        comments: of the protocol, see `SchemaMaker.comments`.
        version: of the contract.
    """
    settings = Settings()
    maker = client_maker(comments)
    messages = {**_queue_messages(maker), **_frame_messages()}
    schemas = {
        **{name: s for name, s in client_schemas(maker).items() if name not in _REST_ONLY},
        **frame_schemas(maker, chat_route=settings.websocket_api.chat_route),
        **queue_schemas(maker),
    }
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Turnline: queues and sockets",
            "version": version,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": _JSON,
        "servers": _servers(),
        "channels": {**_nats(settings), **_kafka(settings), **_sqs(), **_socket()},
        "operations": _operations(),
        "components": {"messages": messages, "schemas": schemas},
    }


# --- where ----------------------------------------------------------------------------------------


def _servers() -> JsonSchema:
    region = {"description": "Setting `execution.queues.sqs.region`."}
    return {
        "gateway": {"host": "localhost:8000", "protocol": "ws"},
        "nats": {"host": "localhost:4222", "protocol": "nats"},
        "kafka": {"host": "localhost:9092", "protocol": "kafka"},
        "sqs": {
            "host": "sqs.{region}.amazonaws.com",
            "protocol": "sqs",
            "variables": {"region": region},
        },
    }


def _nats(settings: Settings) -> JsonSchema:
    nats = settings.execution.queues.nats
    session = "The session's token, so that a subject has the order of its session (ADR 0008)."
    parameters = {
        "partition": {"description": f"crc32 of the session id, modulo {nats.partitions}."},
        "session": {"description": session},
    }
    return {
        f"nats.{side}": _channel(
            "nats",
            side,
            address=f"{getattr(nats, f'{side}_subject_prefix')}.{{partition}}.{{session}}",
            text=f"JetStream work queue `{getattr(nats, f'{side}_stream')}`.",
            messages=("Nats",),
            parameters=parameters,
        )
        for side in _SIDES
    }


def _kafka(settings: Settings) -> JsonSchema:
    kafka = settings.execution.queues.kafka
    topics = {side: getattr(kafka, f"{side}_topic") for side in _SIDES}
    return {
        f"kafka.{side}": _channel(
            "kafka",
            side,
            address=topics[side],
            text="The key is the session's; partitions by murmur2, as the Java client does.",
            messages=("Kafka",),
            bindings={"kafka": {"topic": topics[side], "bindingVersion": "0.5.0"}},
        )
        for side in _SIDES
    }


def _sqs() -> JsonSchema:
    return {
        f"sqs.{side}": _channel(
            "sqs",
            side,
            address=None,
            text=f"FIFO queue whose URL is `execution.queues.{side}.url`; its groups are sessions.",
            messages=("Sqs", "SqsPacked"),
        )
        for side in _SIDES
    }


def _channel(
    broker: str,
    side: str,
    *,
    address: str | None,
    text: str,
    messages: Iterable[str],
    **more: JsonSchema,
) -> JsonSchema:
    kind = "Request" if side == "input" else "Answer"
    names = [f"{prefix}{kind}" for prefix in messages]
    if side == "input":
        names.append("BareRequest")
    return {
        "address": address,
        "title": f"{'Turns to run' if side == 'input' else 'Answers'} over {broker}",
        "description": text,
        "servers": [{"$ref": f"#/servers/{broker}"}],
        "messages": {name: _message_ref(name) for name in names},
        **more,
    }


def _socket() -> JsonSchema:
    token = {
        "type": "object",
        "properties": {
            "token": {
                "type": "string",
                "description": (
                    "The user's token, where it comes neither as an `Authorization` header nor as "
                    "the subprotocol after `turnline.bearer`."
                ),
            }
        },
    }
    return {
        "socket": {
            "address": SOCKET_PATH,
            "title": "A client's socket",
            "description": (
                "JSON text frames.  Closed with 1008 (no valid token), 1009 (frame too large), "
                "1012 (restart; reconnect), 1013 (store away), 4401 (token ended), 4408 (read too "
                "slowly; resume) or 4429 (too many sockets of one user)."
            ),
            "servers": [{"$ref": "#/servers/gateway"}],
            "messages": {
                name: _message_ref(name) for name in sorted((*CLIENT_FRAMES, *SERVER_FRAMES))
            },
            "bindings": {"ws": {"method": "GET", "query": token, "bindingVersion": "0.1.0"}},
        }
    }


# --- what -----------------------------------------------------------------------------------------


def _queue_messages(maker: SchemaMaker) -> JsonSchema:
    copies = {"type": "string", "description": "Copies of one id, sent within a window, are one."}
    mirrored = header_properties(maker)
    nats = {**mirrored, "Nats-Msg-Id": copies}
    kafka = {**mirrored, "ak-dedup-id": copies}
    packed = {"content-type": {"type": "string", "const": _BINARY}}
    key = {"kafka": {"key": {"type": "string", "minLength": 1}, "bindingVersion": "0.5.0"}}
    base64 = {"type": "string", "contentEncoding": "base64", "contentMediaType": _BINARY}
    attributes = attribute_properties(maker)
    found: JsonSchema = {}
    for kind, body in (("Request", "ChatRequest"), ("Answer", "JsonAnswer")):
        envelope = ref(f"{kind}Envelope")
        found |= {
            f"Nats{kind}": _message(
                _BINARY, envelope, nats, needed=("content-type", "request_id", "Nats-Msg-Id")
            ),
            f"Kafka{kind}": _message(
                _BINARY, envelope, kafka, needed=("content-type", "request_id", "ak-dedup-id")
            )
            | {"bindings": key},
            f"Sqs{kind}": _message(_JSON, ref(body), attributes, needed=("turnline",)),
            f"SqsPacked{kind}": _message(_BINARY, base64, packed, needed=("content-type",))
            | {"summary": "As Protobuf in base64, where JSON would be too large."},
        }
    found["BareRequest"] = _message(_JSON, ref("BareRequest"), {}, needed=()) | {
        "summary": "Without metadata."
    }
    return found


def _frame_messages() -> JsonSchema:
    return {
        name: {"name": name, "contentType": _JSON, "payload": ref(name)}
        for name in (*CLIENT_FRAMES, *SERVER_FRAMES)
    }


def _message(
    content_type: str,
    payload: JsonSchema,
    headers: Mapping[str, JsonSchema],
    *,
    needed: Iterable[str],
) -> dict[str, Any]:
    message: dict[str, Any] = {"contentType": content_type, "payload": payload}
    if headers:
        properties = dict(headers)
        message["headers"] = {
            "type": "object",
            "required": list(needed),
            "properties": properties,
            "additionalProperties": {"type": "string"},
        }
    return message


def _message_ref(name: str) -> JsonSchema:
    return {"$ref": f"#/components/messages/{name}"}


# --- who ------------------------------------------------------------------------------------------


def _operations() -> JsonSchema:
    steps = {
        "admit": ("send", "input", "The request handler or gateway admits a turn."),
        "run": ("receive", "input", "A runner takes a turn."),
        "answer": ("send", "output", "The runner says how a turn goes on, and how it ends."),
        "deliver": ("receive", "output", "The responder keeps an answer, and pushes it."),
    }
    operations: JsonSchema = {
        f"{name}.{broker}": {
            "action": action,
            "channel": {"$ref": f"#/channels/{broker}.{side}"},
            "summary": text,
        }
        for broker in ("nats", "kafka", "sqs")
        for name, (action, side, text) in steps.items()
    }
    frames = {
        "hear": ("receive", CLIENT_FRAMES, "The gateway takes a client's frame."),
        "tell": ("send", SERVER_FRAMES, "The gateway sends its client a frame."),
    }
    for name, (action, names, text) in frames.items():
        operations[name] = {
            "action": action,
            "channel": {"$ref": "#/channels/socket"},
            "summary": text,
            "messages": [{"$ref": f"#/channels/socket/messages/{frame}"} for frame in names],
        }
    return operations
