"""The OpenAPI 3.1 document of routes that are not for clients: pushes of pods, and operators."""

from collections.abc import Mapping

from turnline.frontdoor.schemas import client_maker, client_schemas
from turnline.hosting.lifecycle import State
from turnline.protocol.json_schema import JsonSchema, ref
from turnline.push import PUSH_ID
from turnline.push.endpoint import MAX_FRAMES
from turnline.push.endpoint_routes import USER_PUSH_PATH
from turnline.push.routes import PUSH_PATH, PUSH_TOKEN_HEADER

_LETTER = "/admin/dlq/{queue}/{letter_id}"
_COUNT: JsonSchema = {"type": "integer", "minimum": 0}
_TEXT: JsonSchema = {"type": "string"}
_OPTIONAL_TEXT: JsonSchema = {"type": ["string", "null"]}
_STATES = [state.value for state in State]
_ERRORS = {
    400: "A field or parameter is missing or of a wrong value.",
    401: "No token, or a wrong one.",
    403: "No token is configured, so the route is off.",
    404: "There is no such thing here.",
    413: "The body is too large.",
    422: "The body is no JSON, or no object.",
    500: "A fault of the service.",
    503: "A dependency does not answer.",
}


def internal_document(comments: Mapping[str, str], *, version: str) -> JsonSchema:
    """Make the document.

    Args:
        comments: of the protocol, see `SchemaMaker.comments`.
        version: of the contract.
    """
    shared = client_schemas(client_maker(comments))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Turnline: pods and operators",
            "version": version,
            "description": "Routes that are kept from clients.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {**_push_paths(), **_process_paths(), **_admin_paths()},
        "components": {
            "schemas": {**{name: shared[name] for name in ("Error", "ErrorDetail")}, **_SCHEMAS},
            "securitySchemes": {
                "pods": {"type": "apiKey", "in": "header", "name": PUSH_TOKEN_HEADER},
                "operator": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _push_paths() -> JsonSchema:
    errors = (400, 401, 403, 404, 413, 422, 500)
    return {
        PUSH_PATH: {
            "post": {
                **_operation("pushToConnection", "Push frames to a socket of this pod.", "pods"),
                "requestBody": _body("ConnectionFrames"),
                "responses": {"200": _ok("Taken.", ref("Taken")), **_errors(*errors)},
            }
        },
        USER_PUSH_PATH: {
            "post": {
                **_operation("pushToUser", "Push frames to all of a user's sockets.", "pods"),
                "requestBody": _body("UserFrames"),
                "responses": {"200": _ok("Taken.", ref("Pushed")), **_errors(*errors, 503)},
            }
        },
    }


def _process_paths() -> JsonSchema:
    said = {"text/plain": {"schema": _TEXT}}
    health = {
        "200": _ok("Its loop runs and its parts are alive.", ref("Health")),
        "503": _ok("A part has stopped; a restart would help.", ref("Health")),
    }
    ready = {
        "200": _ok("It takes work.", ref("Ready")),
        "503": _ok("It starts, drains or is cut off.", ref("Ready")),
    }
    return {
        "/health": {"get": {**_operation("getHealth", "Is it alive?"), "responses": health}},
        "/ready": {"get": {**_operation("getReady", "Does it take work?"), "responses": ready}},
        "/metrics": {
            "get": {
                **_operation("getMetrics", "Metrics in the text format of Prometheus."),
                "responses": {"200": {"description": "Metrics.", "content": said}},
            }
        },
    }


def _admin_paths() -> JsonSchema:
    queue = _path_parameter("queue", {"enum": ["input", "output"]})
    letter = [queue, _path_parameter("letter_id", _TEXT)]
    page = [
        queue,
        _query("limit", {"type": "integer", "minimum": 1, "maximum": 1000}, "At most so many."),
        _query("after", _TEXT, "Id of the last letter seen; empty begins with the oldest."),
    ]
    return {
        "/admin/queues": {"get": _admin("getQueues", "Depths of the queues.", ref("Queues"), [])},
        "/admin/dlq/{queue}": {
            "get": _admin("listLetters", "Dead letters, oldest first.", ref("Letters"), page),
            "delete": _admin("purgeLetters", "Remove all.", ref("Purged"), [queue]),
        },
        _LETTER: {
            "get": _admin("showLetter", "The whole of one.", ref("WholeLetter"), letter),
            "delete": _admin("purgeLetter", "Remove one.", ref("Purged"), letter),
        },
        f"{_LETTER}/redrive": {
            "post": _admin("redriveLetter", "Send one again.", ref("Redriven"), letter)
        },
    }


# --- pieces -------------------------------------------------------------------------------------


def _operation(name: str, summary: str, security: str = "") -> JsonSchema:
    found: JsonSchema = {"operationId": name, "summary": summary}
    return {**found, "security": [{security: []}]} if security else found


def _admin(name: str, summary: str, answer: JsonSchema, parameters: list[JsonSchema]) -> JsonSchema:
    return {
        **_operation(name, summary, "operator"),
        "parameters": parameters,
        "responses": {"200": _ok("Done.", answer), **_errors(400, 401, 403, 404, 500, 503)},
    }


def _body(name: str) -> JsonSchema:
    return {"required": True, "content": {"application/json": {"schema": ref(name)}}}


def _ok(description: str, schema: JsonSchema) -> JsonSchema:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _errors(*statuses: int) -> JsonSchema:
    return {str(status): _ok(_ERRORS[status], ref("Error")) for status in statuses}


def _path_parameter(name: str, schema: JsonSchema) -> JsonSchema:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query(name: str, schema: JsonSchema, text: str) -> JsonSchema:
    return {"name": name, "in": "query", "schema": schema, "description": text}


def _closed(**properties: JsonSchema) -> JsonSchema:
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }


def _frames(name: str, text: str) -> JsonSchema:
    frame = {
        "type": "object",
        "description": "A frame, as the client sees it.",
        "properties": {
            PUSH_ID: {
                "type": "string",
                "description": "Names it, so that it may be pushed again; made if absent.",
            },
        },
    }
    return {
        "type": "object",
        "required": [name],
        "properties": {
            name: {"type": "string", "minLength": 1, "description": text},
            "message": frame,
            "messages": {"type": "array", "items": frame, "minItems": 1, "maxItems": MAX_FRAMES},
        },
        "oneOf": [{"required": ["message"]}, {"required": ["messages"]}],
    }


_LETTER_FIELDS: Mapping[str, JsonSchema] = {
    "id": _TEXT,
    "reason": _TEXT,
    "at": {"type": "number", "description": "When it was given up, seconds since the epoch."},
    "attempt": _COUNT,
    "request_id": _OPTIONAL_TEXT,
    "session_id": _OPTIONAL_TEXT,
    "user_id": _OPTIONAL_TEXT,
    "bytes": _COUNT,
}
_SCHEMAS: JsonSchema = {
    "ConnectionFrames": _frames("connection_id", "As the connection store has it."),
    "UserFrames": _frames("user_id", "The authenticated user."),
    "Taken": _closed(status={"const": "SUCCESS"}),
    "Pushed": _closed(
        status={"const": "SUCCESS"},
        reached={**_COUNT, "description": "Sockets that took the frames."},
        held={"type": "boolean", "description": "Kept for the user's next socket."},
    ),
    "Health": {
        "type": "object",
        "required": ["status"],
        "properties": {
            "status": {"enum": ["ok", "failed"]},
            "state": {"enum": _STATES},
            "parts": {"type": "object", "description": "Which have stopped."},
        },
    },
    "Ready": {
        "type": "object",
        "required": ["status"],
        "properties": {
            "status": {"enum": [*_STATES, "not ready"]},
            "dependencies": {
                "type": "object",
                "additionalProperties": _TEXT,
                "description": "Which do not answer, and why.",
            },
        },
    },
    "Queues": _closed(input=ref("Depth"), output=ref("Depth")),
    "Depth": _closed(
        waiting=_COUNT,
        in_flight=_COUNT,
        dead=_COUNT,
        oldest_age_seconds={"type": "number", "minimum": 0},
    ),
    "Letters": _closed(letters={"type": "array", "items": ref("Letter")}),
    "Letter": _closed(**_LETTER_FIELDS),
    "WholeLetter": _closed(
        **_LETTER_FIELDS,
        raw={"type": "string", "contentEncoding": "base64", "description": "The message."},
    ),
    "Purged": _closed(purged=_COUNT),
    "Redriven": _closed(redriven={"const": 1}),
}
