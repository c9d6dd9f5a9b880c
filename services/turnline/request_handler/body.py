"""Reading a request body within bounds of size and time, and JSON out of it."""

from dataclasses import dataclass

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from turnline.errors import Code, InvalidRequestError, PayloadTooLargeError
from turnline.protocol.deadline import within


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyLimits:
    """Bounds of one request body.

    Attributes:
        max_bytes: size over which it is refused, however it is sent (`api.max_body_bytes`).
        max_file_bytes: size of one uploaded file (`api.max_file_size`).
        timeout: seconds for the whole body to arrive.
    """

    max_bytes: int
    max_file_bytes: int
    timeout: float = 30.0


async def read_body(receive: Receive, *, length: str, max_bytes: int, timeout: float) -> bytes:
    """Read a body, refusing it as soon as it is known to be too large.

    Args:
        length: the Content-Length header; empty for a chunked body.

    Raises:
        PayloadTooLargeError: over `max_bytes`.
        HTTPException: 408, it did not arrive in time.
        ClientDisconnect: the client left.
    """
    refuse_length(length, max_bytes)
    try:
        return await within(timeout, _read(receive, max_bytes))
    except TimeoutError as error:
        raise HTTPException(408, "The request body did not arrive in time") from error


def refuse_length(length: str, max_bytes: int) -> None:
    """Refuse a body by its Content-Length header; empty or malformed says nothing.

    Raises:
        PayloadTooLargeError: over `max_bytes`.
    """
    if length.isascii() and length.isdigit() and (len(length) > 15 or int(length) > max_bytes):
        raise too_large(max_bytes)


async def _read(receive: Receive, max_bytes: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > max_bytes:
            raise too_large(max_bytes)
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def parse_json(body: bytes, *, content_type: str) -> object:
    """Decode a JSON body; a missing content type is taken for JSON.

    Raises:
        InvalidRequestError: MALFORMED_BODY, it is no JSON, or nested beyond reason.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type and media_type != "application/json" and not media_type.endswith("+json"):
        raise malformed("The body must be JSON; send Content-Type: application/json")
    if not body:
        raise malformed("The body is empty; send a JSON object")
    try:
        value: object = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise malformed(f"The body is not valid JSON (at character {error.pos})") from error
    return value


def malformed(message: str) -> InvalidRequestError:
    """Make the error for a body that cannot be read at all."""
    return InvalidRequestError(message, field="body", code=Code.MALFORMED_BODY)


def too_large(max_bytes: int) -> PayloadTooLargeError:
    """Make the error for a body over the limit."""
    return PayloadTooLargeError(
        f"The request body is over {max_bytes} bytes", limit_bytes=max_bytes
    )
