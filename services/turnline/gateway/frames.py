"""Client frames: reading them, and the frames that answer them directly (guide, "WebSocket")."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from turnline.errors import Code, InvalidRequestError, TurnlineError
from turnline.frontdoor import error_detail
from turnline.protocol import Failure, ReplyKey, check_id
from turnline.push import Frame
from turnline.store import Cancelled

_CANCEL_STATES = {
    Cancelled.QUEUED: "CANCELLED",
    Cancelled.RUNNING: "CANCELLING",
    Cancelled.DONE: "DONE",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFrame:
    """One frame a client sent.

    Attributes:
        route: which handler; the chat route when the frame names none.
        request_id: the client's id for it; empty if none was given.
        body: the frame's `body`, or the frame itself when it is flat.
        stream: whether chunks are wanted; None leaves it to `execution.mode`.
        raw: the whole frame, for custom routes.
    """

    route: str
    request_id: str
    body: Mapping[str, Any]
    stream: bool | None
    raw: Mapping[str, Any]


def decode_frame(text: str) -> Mapping[str, Any]:
    """Read a text frame as far as every frame goes.

    Raises:
        InvalidRequestError: it is no JSON object.
    """
    try:
        raw = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidRequestError(
            "Invalid frame: not JSON", field="frame", code=Code.MALFORMED_BODY
        ) from error
    if not isinstance(raw, dict):
        raise InvalidRequestError(
            "Invalid frame: must be a JSON object", field="frame", code=Code.MALFORMED_BODY
        )
    return raw


def read_frame(raw: Mapping[str, Any], *, chat_route: str) -> ClientFrame:
    """Read a decoded frame; what its body means is left to its route.

    Raises:
        InvalidRequestError: a field has a wrong type, or a chat frame has no body.
    """
    route = _optional(raw, "route")
    if route is None:
        route = chat_route
    if not isinstance(route, str):
        raise InvalidRequestError("route must be a string", field="route")
    request_id = _optional(raw, "request_id")
    stream = raw.get("stream")
    if stream is not None and not isinstance(stream, bool):
        raise InvalidRequestError("stream must be true or false", field="stream")
    return ClientFrame(
        route=route,
        request_id=check_id(request_id, field="request_id") if request_id is not None else "",
        body=_body(raw, needed=route == chat_route),
        stream=stream,
        raw=raw,
    )


def request_id_in(raw: Mapping[str, Any]) -> str:
    """Find the request id of a frame that may be wrong otherwise; empty if it has no valid one."""
    try:
        return check_id(raw.get("request_id"), field="request_id")
    except InvalidRequestError:
        return ""


def reply_key(frame: ClientFrame, user_id: str) -> ReplyKey:
    """Give the turn of a user that a frame is about.

    Raises:
        InvalidRequestError: it names none.
    """
    if not frame.request_id:
        raise InvalidRequestError("request_id is required", field="request_id")
    return ReplyKey(user_id, frame.request_id)


def _optional(raw: Mapping[str, Any], name: str) -> object:
    """Give a field, an empty text being as good as none."""
    value = raw.get(name)
    return None if value == "" else value


def _body(raw: Mapping[str, Any], *, needed: bool) -> Mapping[str, Any]:
    body = raw.get("body")
    if isinstance(body, dict):
        return body
    if body is not None:
        raise InvalidRequestError("body must be a JSON object", field="body")
    flat = {key: value for key, value in raw.items() if key not in ("body", "route", "stream")}
    if needed and not flat.keys() & {"prompt", "session_id", "resume", "requests"}:
        raise InvalidRequestError("body is required", field="body")
    return flat


def check_chat(body: Mapping[str, Any]) -> None:
    """Refuse a chat body that lacks what every turn needs, in the guide's words for sockets.

    Raises:
        InvalidRequestError: no `session_id`, or nothing to answer.
    """
    if body.get("session_id") in (None, ""):
        raise InvalidRequestError("session_id is required", field="session_id")
    if not (body.get("prompt") or body.get("resume") or body.get("requests")):
        raise InvalidRequestError(
            "prompt is required unless the request carries a resume block", field="prompt"
        )


def queued(*, request_id: str, session_id: str, user_id: str) -> Frame:
    """The CHAT_QUEUED frame that answers a chat frame."""
    return {
        "status": "SUCCESS",
        "message": "Request queued successfully",
        "user_id": user_id,
        "session_id": session_id,
        "request_id": request_id,
        "type": "CHAT_QUEUED",
    }


def succeeded(fields: Mapping[str, Any], *, request_id: str = "") -> Frame:
    """A SYSTEM_RESPONSE that carries a handler's own fields."""
    frame: Frame = {"status": "SUCCESS", **fields, "type": "SYSTEM_RESPONSE"}
    if request_id:
        frame["request_id"] = request_id
    return frame


def cancelled(state: Cancelled, *, request_id: str) -> Frame:
    """A SYSTEM_RESPONSE that says how far a turn had come when it was cancelled."""
    return succeeded({"state": _CANCEL_STATES[state]}, request_id=request_id)


def failed(error: TurnlineError, *, request_id: str = "") -> Frame:
    """A SYSTEM_RESPONSE that says what was wrong with a frame."""
    detail = error_detail(Failure.from_error(error), request_id=request_id)
    return {"status": "FAILED", "message": error.message, **detail, "type": "SYSTEM_RESPONSE"}
