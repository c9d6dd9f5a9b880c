"""The OpenAPI 3.1 document of the REST routes, served at `/openapi.json`.

Its schemas are made from the Protobuf descriptors; its routes are written by hand and held true by
tests that run the real app against them.  `docs/api/openapi.yaml` is this document with the
comments of the .proto files.
"""

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType

from turnline.frontdoor.schemas import POSITION, client_maker, client_schemas, turn_ids
from turnline.protocol.json_schema import JsonSchema, SchemaMaker, ref

_ID: JsonSchema = {"type": "string", "minLength": 1, "maxLength": 256}
_NO_COMMENTS: Mapping[str, str] = MappingProxyType({})

_CALLER_ERRORS = {
    400: "A field is missing, empty, of a wrong value, or names an agent nobody registered.",
    408: "The body did not arrive in time.",
    413: "The body, a file or the message for the queue is too large.",
    422: "The body cannot be read, or the request id was used with another body.",
    429: "The session's share of the queue is used up; see Retry-After.",
}
_SERVER_ERRORS = {
    500: "The agent failed, or a fault of the service; details are in its log.",
    503: "The queue is full, a dependency does not answer, or the process is closing.",
    504: "The turn did not end in time; come back with its request_id.",
}


def openapi_document(
    *, authenticated: bool, agents: bool, comments: Mapping[str, str] = _NO_COMMENTS
) -> JsonSchema:
    """Make the document.

    Args:
        authenticated: whether routes need a bearer token.
        agents: whether the agents route is on.
        comments: of the protocol, see `SchemaMaker.comments`; none are known at run time.
    """
    paths: JsonSchema = {
        "/api/v1/chat": {"post": _post_chat(), "get": _get_chat(), "delete": _delete_chat()},
        "/api/v1/chat-multipart": {"post": _post_multipart()},
        "/openapi.json": {"get": _get_document()},
    }
    if agents:
        paths["/api/v1/agents"] = {"get": _get_agents()}
    components: JsonSchema = {"schemas": _schemas(client_maker(comments))}
    document: JsonSchema = {
        "openapi": "3.1.0",
        "info": {
            "title": "Turnline",
            "version": _version(),
            "description": "Chat-agent turns through a queue pipeline.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": components,
    }
    if authenticated:
        components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
        for name, path in paths.items():
            for operation in path.values() if name != "/openapi.json" else ():
                operation["security"] = [{"bearer": []}]
                operation["responses"]["401"] = _error("No token, or one that is refused.")
    return document


# --- operations ---------------------------------------------------------------------------------


def _post_chat() -> JsonSchema:
    return {
        "operationId": "postChat",
        "summary": "Run a turn and wait for it, stream it, or come back for it.",
        "parameters": [*_POST_HEADERS],
        "requestBody": {"required": True, "content": _json(ref("ChatRequest"))},
        "responses": _post_responses(),
    }


def _post_multipart() -> JsonSchema:
    form = {"multipart/form-data": {"schema": ref("ChatForm")}}
    return {
        "operationId": "postChatMultipart",
        "summary": "Run a turn with uploaded files.",
        "parameters": [*_POST_HEADERS],
        "requestBody": {"required": True, "content": form},
        "responses": _post_responses(),
    }


def _post_responses() -> JsonSchema:
    return {
        "200": _ended("The reply, or its stream."),
        "202": {
            "description": "On its way; its answer will be at Location.",
            "headers": {"Location": _string_header("Where to poll for the answer.")},
            "content": _json({"oneOf": [ref("Accepted"), ref("ChatReply")]}),
        },
        **_agents_own_statuses(),
        **_errors({**_CALLER_ERRORS, **_SERVER_ERRORS}),
    }


def _get_chat() -> JsonSchema:
    return {
        "operationId": "getChat",
        "summary": "Read a turn's answer, or with Accept: text/event-stream join its stream.",
        "parameters": [
            _query("request_id", _ID, "Names the turn.", required=True),
            _query("session_id", {"type": "string"}, "Echoed in error details; not checked."),
            _query("wait", {"type": "number", "minimum": 0}, "Seconds to wait for the end."),
            _query("last_event_id", {"type": "string"}, "As the header Last-Event-ID."),
            _header("Last-Event-ID", {"type": "string"}, "Place in the stream to resume from."),
        ],
        "responses": {
            "200": _ended("The reply, or its stream."),
            "202": {
                "description": "The reply of a turn that ended with this status.",
                "content": _json(ref("ChatReply")),
            },
            **_agents_own_statuses(),
            **_errors(
                {
                    400: "request_id is missing, or a parameter is malformed.",
                    404: "No answer yet, or no such turn of this user.",
                    422: "The turn ended with this status.",
                    429: "The turn ended with this status.",
                    **_SERVER_ERRORS,
                }
            ),
        },
    }


def _delete_chat() -> JsonSchema:
    states = _json(ref("CancelState"))
    return {
        "operationId": "deleteChat",
        "summary": "Cancel a turn, queued or running.",
        "parameters": [
            _query("request_id", _ID, "Names the turn.", required=True),
            _query("session_id", {"type": "string"}, "Echoed in error details; not checked."),
        ],
        "responses": {
            "200": {"description": "Cancelled while queued, or had ended.", "content": states},
            "202": {"description": "Running; its runner was told.", "content": states},
            **_errors(
                {
                    400: "request_id is missing or malformed.",
                    404: "No such turn of this user.",
                    500: "A fault of the service.",
                    503: "A dependency does not answer.",
                }
            ),
        },
    }


def _get_agents() -> JsonSchema:
    return {
        "operationId": "getAgents",
        "summary": "List the agents of this process.",
        "responses": {
            "200": {"description": "Names.", "content": _json(ref("Agents"))},
            **_errors({500: "A fault of the service."}),
        },
    }


def _get_document() -> JsonSchema:
    return {
        "operationId": "getOpenApi",
        "summary": "This document.",
        "responses": {"200": {"description": "OpenAPI 3.1.", "content": _json({"type": "object"})}},
    }


# --- pieces -------------------------------------------------------------------------------------


def _ended(description: str) -> JsonSchema:
    return {
        "description": description,
        "content": {
            **_json(ref("ChatReply")),
            # OpenAPI 3.1 has no word for what the `data` of an event is.
            "text/event-stream": {
                "schema": {"type": "string"},
                "x-event-data": ref("StreamFrame"),
                "x-event-id": POSITION,
            },
        },
    }


def _agents_own_statuses() -> JsonSchema:
    """Statuses an agent may choose that the service never does."""
    return {
        "2XX": {
            "description": "The reply of a turn whose agent chose this status.",
            "content": _json(ref("ChatReply")),
        },
        "3XX": {
            "description": "The reply of a turn whose agent chose this status.",
            "content": _json(ref("ChatReply")),
        },
        "4XX": _error("The turn failed with this status."),
        "5XX": _error("The turn failed with this status."),
    }


def _errors(descriptions: Mapping[int, str]) -> JsonSchema:
    return {str(status): _error(text) for status, text in descriptions.items()}


def _error(description: str) -> JsonSchema:
    return {
        "description": description,
        "headers": {"Retry-After": _string_header("Seconds to wait, where that helps.")},
        "content": _json(ref("Error")),
    }


def _json(schema: JsonSchema) -> JsonSchema:
    return {"application/json": {"schema": schema}}


def _string_header(description: str) -> JsonSchema:
    return {"description": description, "schema": {"type": "string"}}


def _query(name: str, schema: JsonSchema, text: str, *, required: bool = False) -> JsonSchema:
    return {
        "name": name,
        "in": "query",
        "required": required,
        "schema": schema,
        "description": text,
    }


def _header(name: str, schema: JsonSchema, text: str) -> JsonSchema:
    return {"name": name, "in": "header", "required": False, "schema": schema, "description": text}


def _version() -> str:
    try:
        return version("turnline")
    except PackageNotFoundError:
        return "0"


_POST_HEADERS = (
    _header("Idempotency-Key", _ID, "Names the turn; the same key and body gives the same answer."),
    _header("Prefer", {"type": "string"}, "`respond-async` for 202, `wait=N` to wait N s first."),
    _header("Last-Event-ID", {"type": "string"}, "Place in the stream of a repeated request."),
)


def _schemas(maker: SchemaMaker) -> dict[str, JsonSchema]:
    ids = turn_ids(maker)
    return {
        **client_schemas(maker),
        "ChatForm": {
            "type": "object",
            "required": ["prompt", "session_id"],
            "properties": {
                "prompt": {"type": "string"},
                "session_id": ids["session_id"],
                "agent": {"type": "string"},
                "files": {"type": "array", "items": {"type": "string", "format": "binary"}},
                "images": {"type": "array", "items": {"type": "string", "format": "binary"}},
            },
        },
        "Accepted": {
            "type": "object",
            "required": ["status", "request_id", "session_id"],
            "properties": {"status": {"const": "ACCEPTED"}, **ids},
            "additionalProperties": False,
        },
        "CancelState": {
            "type": "object",
            "required": ["status", "request_id"],
            "properties": {
                "status": {"enum": ["CANCELLED", "CANCELLING", "DONE"]},
                "request_id": ids["request_id"],
            },
        },
        "Agents": {
            "type": "object",
            "required": ["agents"],
            "properties": {"agents": {"type": "array", "items": {"type": "string"}}},
        },
    }
