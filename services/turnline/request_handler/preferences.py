"""How a caller wants to be answered, read from its headers.  Pure: headers in, values out.

`Accept: text/event-stream` asks for a stream, `Prefer: respond-async[, wait=N]` (RFC 7240) for a
202, `Idempotency-Key` (IETF draft of that name) names the turn, `Last-Event-ID` (HTML standard)
a place in its stream.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from turnline.errors import InvalidRequestError
from turnline.protocol import BEGINNING, Position, check_id

EVENT_STREAM = "text/event-stream"

_SECONDS = re.compile(r"\d{1,9}(\.\d{1,9})?")


class ReplyMode(StrEnum):
    """How the answer to a POST goes back; values are those of `execution.mode`.

    SOCKET: over the WebSocket route only; a POST has to ask for another way.
    """

    SYNC = "rest_sync"
    ASYNC = "rest_async"
    STREAM = "stream"
    SOCKET = "async"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """What the caller asked for.

    Attributes:
        mode: None leaves it to `execution.mode`.
        wait: seconds to wait for the end before a 202; 0 means not at all.
        applied: value of `Preference-Applied`; empty when no preference was used.
    """

    mode: ReplyMode | None = None
    wait: float = 0.0
    applied: str = ""


NO_PREFERENCE = Preference()


def read_headers(raw: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Give headers by lower-case name; the values of a repeated one are joined by commas."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in raw:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def read_preference(*, accept: str, prefer: str) -> Preference:
    """Read the two headers; unknown or malformed preferences are ignored, as RFC 7240 wants."""
    if accept and wants_event_stream(accept):
        return Preference(mode=ReplyMode.STREAM)
    if not prefer:
        return NO_PREFERENCE
    names: dict[str, str] = {}
    for part in prefer.split(","):
        name, _, value = part.partition(";")[0].partition("=")
        names.setdefault(name.strip().lower(), value.strip().strip('"'))
    if "respond-async" not in names:
        return NO_PREFERENCE
    wait = names.get("wait", "")
    if not wait.isascii() or not wait.isdigit() or len(wait) > 9:
        return Preference(mode=ReplyMode.ASYNC, applied="respond-async")
    return Preference(
        mode=ReplyMode.ASYNC, wait=float(wait), applied=f"respond-async, wait={int(wait)}"
    )


def wants_event_stream(accept: str) -> bool:
    """Whether the media type of event streams is listed, and not refused by `q=0`."""
    for part in accept.lower().split(","):
        name, _, parameters = part.partition(";")
        if name.strip() == EVENT_STREAM:
            return not re.fullmatch(r"\s*q=0(\.0*)?\s*", parameters)
    return False


def turn_name(*, header: str, body: str) -> str:
    """Give the request id a caller chose, from the header, the body or both; empty if neither.

    Raises:
        InvalidRequestError: the two differ, or the header is no id.
    """
    if not header:
        return body
    # The draft makes it a structured-field string, in quotes; most clients send it bare.
    quoted = len(header) >= 2 and header[0] == header[-1] == '"'
    key = check_id(header[1:-1] if quoted else header, field="Idempotency-Key")
    if body and body != key:
        raise InvalidRequestError(
            "Idempotency-Key and request_id differ; send one of them, or both alike",
            field="Idempotency-Key",
        )
    return key


def stream_position(text: str) -> Position:
    """Read `Last-Event-ID`; empty means the beginning.

    Raises:
        InvalidRequestError: it is no id this service gave out.
    """
    if not text:
        return BEGINNING
    try:
        return Position.parse(text)
    except ValueError as error:
        raise InvalidRequestError(
            "Last-Event-ID must be the id of an event of this stream", field="last_event_id"
        ) from error


def wait_seconds(text: str) -> float:
    """Read the `wait` parameter of a poll; empty means 0.

    Raises:
        InvalidRequestError: it is no decimal number of seconds.
    """
    if not text:
        return 0.0
    if not text.isascii() or not _SECONDS.fullmatch(text):
        raise InvalidRequestError("wait must be a number of seconds, 0 or more", field="wait")
    return float(text)


def answered_over_sockets(mode: ReplyMode) -> InvalidRequestError:
    """Say where an installation answers that keeps no answers for this surface (guide's words)."""
    if mode is ReplyMode.STREAM:
        text = "STREAM responses on this topology are delivered over the WebSocket route"
    else:
        text = "ASYNC mode delivers responses over the WebSocket route"
    return InvalidRequestError(f"{text}: connect to /ws instead", field="prefer")
