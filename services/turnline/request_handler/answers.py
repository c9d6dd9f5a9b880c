"""What the outcomes of chat look like over HTTP: statuses, bodies, headers."""

from urllib.parse import quote

from starlette.responses import Response

from turnline.errors import CODES, Code, RetryHint
from turnline.frontdoor import (
    Admitted,
    error_response,
    failure_headers,
    json_response,
    reply_body,
)
from turnline.protocol import Failure
from turnline.request_handler.handler import NoReply
from turnline.store import Cancelled, StoredReply

CHAT_PATH = "/api/v1/chat"
POLL_PAUSE_SECONDS = 1

_CANCEL_STATUSES = {
    Cancelled.QUEUED: (200, "CANCELLED"),
    Cancelled.RUNNING: (202, "CANCELLING"),
    Cancelled.DONE: (200, "DONE"),
}


def stream_location(request_id: str) -> str:
    """Give the address of a turn's answer, to poll or, as an event stream, to resume."""
    return f"{CHAT_PATH}?request_id={quote(request_id, safe='')}"


def ended_response(reply: StoredReply, *, applied: str = "") -> Response:
    """Answer with the end of a turn: its own status, the guide's body.

    Args:
        applied: preferences that were followed (RFC 7240); empty if none.
    """
    headers = {"Preference-Applied": applied} if applied else {}
    if isinstance(reply.payload, Failure):
        headers |= failure_headers(reply.payload)
    return json_response(_http_status(reply), reply_body(reply), headers)


def chat_response(outcome: StoredReply | NoReply) -> Response:
    """Answer a caller who waited."""
    if isinstance(outcome, StoredReply):
        return ended_response(outcome)
    return error_response(
        outcome.error, session_id=outcome.session_id, request_id=outcome.request_id
    )


def accepted_response(turn: Admitted, *, applied: str) -> Response:
    """Answer that a turn is on its way (202) and where its answer will be."""
    headers = {"Location": stream_location(turn.request_id)}
    if applied:
        headers["Preference-Applied"] = applied
    body = {
        "status": "ACCEPTED",
        "request_id": turn.request_id,
        "session_id": turn.session_id,
    }
    return json_response(202, body, headers)


def not_ready_response(*, request_id: str, session_id: str, pending: bool) -> Response:
    """Answer that there is nothing to read (404): not yet, or no such turn of this user."""
    code = Code.REPLY_NOT_READY if pending else Code.NOT_FOUND
    detail = {
        "error": "NOT_FOUND",
        "message": f"No response message found for request_id '{request_id}'. "
        "The message may be unavailable. Please try again.",
        "code": code.value,
        "retry": CODES[code].retry.value,
        "request_id": request_id,
    }
    if session_id:
        detail["session_id"] = session_id
    if CODES[code].retry is not RetryHint.AFTER:
        return json_response(404, {"detail": detail})
    headers = {"Retry-After": str(POLL_PAUSE_SECONDS)}
    return json_response(404, {"detail": detail | {"retry_after": POLL_PAUSE_SECONDS}}, headers)


def cancel_response(state: Cancelled, *, request_id: str) -> Response:
    """Answer what became of a cancel: done now, under way, or too late."""
    status, word = _CANCEL_STATUSES[state]
    return json_response(status, {"status": word, "request_id": request_id})


def _http_status(reply: StoredReply) -> int:
    """The turn's own status, if HTTP has it as a final one."""
    failed = isinstance(reply.payload, Failure)
    if 400 <= reply.status_code <= 599 or (200 <= reply.status_code <= 399 and not failed):
        return reply.status_code
    return 500 if failed else 200
