"""JSON Schemas of the frames on client sockets, both ways; see `turnline.gateway.frames`."""

from turnline.frontdoor.schemas import POSITION, failure_properties, turn_ids
from turnline.gateway.handler import CANCEL_ROUTE, RESERVED_ROUTES, RESUME_ROUTE
from turnline.protocol.json_schema import JsonSchema, SchemaMaker, ref
from turnline.push import CHAT_RESPONSE, PUSH_ID, STREAM_CHUNK
from turnline.v1 import chat_pb2

CLIENT_FRAMES = ("ChatFrame", "ResumeFrame", "CancelFrame", "RouteFrame")
SERVER_FRAMES = ("ChatQueued", "ChatResponse", "StreamChunk", "SystemResponse", "PushedFrame")

_SYSTEM = {"const": "SYSTEM_RESPONSE"}


def frame_schemas(maker: SchemaMaker, *, chat_route: str) -> dict[str, JsonSchema]:
    """Give the schemas by name, beside those of `client_schemas`.

    Args:
        chat_route: `websocket_api.chat_route`.
    """
    ids = turn_ids(maker)
    return {
        "ChatFrame": _chat_frame(ids, chat_route),
        "ResumeFrame": _about_a_turn(
            ids,
            RESUME_ROUTE,
            "Sends a turn's pieces again, from behind a position.",
            {"body": {"type": "object", "properties": {"after": _optional_position()}}},
        ),
        "CancelFrame": _about_a_turn(ids, CANCEL_ROUTE, "Stops a turn, queued or running.", {}),
        "RouteFrame": _route_frame(ids, chat_route),
        "ChatQueued": _chat_queued(ids),
        "ChatResponse": _chat_response(maker, ids),
        "StreamChunk": {
            "allOf": [ref("StreamFrame")],
            "required": ["type"],
            "properties": {
                "type": {"const": STREAM_CHUNK},
                "first_index": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "First of the pieces that were merged for a slow client.",
                },
            },
        },
        "SystemResponse": _system_response(maker, ids),
        "PushedFrame": {
            "type": "object",
            "description": "What an application pushed to the user, as it is.",
            "properties": {
                PUSH_ID: {
                    "type": "string",
                    "description": "Comes once over a socket; it may come again over the next one.",
                },
            },
        },
    }


def _chat_frame(ids: dict[str, JsonSchema], chat_route: str) -> JsonSchema:
    around = {
        "route": {"const": chat_route, "description": "Setting `websocket_api.chat_route`."},
        "request_id": ids["request_id"],
        "stream": {
            "type": ["boolean", "null"],
            "description": "Whether pieces are wanted; absent leaves it to `execution.mode`.",
        },
    }
    return {
        "type": "object",
        "description": "Runs a turn.  The body may lie flat in the frame.",
        "properties": around,
        "anyOf": [
            {"required": ["body"], "properties": {"body": ref("ChatRequest")}},
            ref("ChatRequest"),
        ],
    }


def _about_a_turn(
    ids: dict[str, JsonSchema], route: str, text: str, more: dict[str, JsonSchema]
) -> JsonSchema:
    return {
        "type": "object",
        "description": text,
        "required": ["route", "request_id"],
        "properties": {"route": {"const": route}, "request_id": ids["request_id"], **more},
    }


def _optional_position() -> JsonSchema:
    beginning = {"enum": ["", None]}
    return {"anyOf": [POSITION, beginning], "description": "Absent means from the beginning."}


def _route_frame(ids: dict[str, JsonSchema], chat_route: str) -> JsonSchema:
    taken = sorted({chat_route, *RESERVED_ROUTES})
    return {
        "type": "object",
        "description": "Calls an application's own route; all other fields are its own.",
        "required": ["route"],
        "properties": {
            "route": {"type": "string", "minLength": 1, "not": {"enum": taken}},
            "request_id": ids["request_id"],
        },
    }


def _chat_queued(ids: dict[str, JsonSchema]) -> JsonSchema:
    return {
        "type": "object",
        "description": "A chat frame's turn is on its way; comes before anything else of it.",
        "required": ["status", "message", "user_id", "session_id", "request_id", "type"],
        "properties": {
            "status": {"const": "SUCCESS"},
            "message": {"type": "string"},
            "user_id": {"type": "string", "minLength": 1},
            **ids,
            "type": {"const": "CHAT_QUEUED"},
        },
    }


def _chat_response(maker: SchemaMaker, ids: dict[str, JsonSchema]) -> JsonSchema:
    result = maker.properties(chat_pb2.ChatReply, only=("result",))
    status = maker.properties(chat_pb2.TurnEnd, only=("status_code",))
    return {
        "type": "object",
        "description": "The whole answer of a turn that is not streamed, or why there is none.",
        "required": ["status_code", "session_id", "request_id", "type"],
        "properties": {
            **result,
            **failure_properties(maker),
            **status,
            **ids,
            "type": {"const": CHAT_RESPONSE},
        },
        "oneOf": [{"required": ["result"]}, {"required": ["error", "code", "retry"]}],
    }


def _system_response(maker: SchemaMaker, ids: dict[str, JsonSchema]) -> JsonSchema:
    kinds = {
        "SUCCESS": _succeeded(ids),
        "FAILED": _failed(maker, ids),
        "RECONNECT": {
            "description": "The socket will be closed; come back after a pause of so many seconds.",
            "required": ["message", "retry_after"],
            "properties": {
                "message": {"type": "string"},
                "retry_after": {"type": "number", "minimum": 0},
            },
        },
    }
    return {
        "type": "object",
        "required": ["status", "type"],
        "properties": {"status": {"enum": list(kinds)}, "type": _SYSTEM},
        "oneOf": [
            {**rest, "properties": {"status": {"const": status}, **rest["properties"]}}
            for status, rest in kinds.items()
        ],
    }


def _succeeded(ids: dict[str, JsonSchema]) -> JsonSchema:
    states = ["CANCELLED", "CANCELLING", "DONE", "RESUMING"]
    return {
        "description": (
            "Answers `resume` (RESUMING, with the position it begins behind) and `cancel`; what an "
            "application's route gave has the fields it gave."
        ),
        "properties": {
            "state": {"examples": states},
            "after": {"description": "Position, with RESUMING."},
            "session_id": {"description": "With RESUMING."},
            "request_id": ids["request_id"],
        },
    }


def _failed(maker: SchemaMaker, ids: dict[str, JsonSchema]) -> JsonSchema:
    return {
        "description": "A frame that nothing was done for, and why.",
        "required": ["message", "error", "code", "retry"],
        "properties": {
            "message": {"type": "string", "description": "The same as `error`."},
            **failure_properties(maker),
            "request_id": ids["request_id"],
        },
    }
