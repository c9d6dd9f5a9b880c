"""Reads the body of a request, as far as it may be large."""

from starlette.requests import Request

from turnline.errors import PayloadTooLargeError


async def body_within(request: Request, max_bytes: int) -> bytes:
    """Give the body.

    Raises:
        PayloadTooLargeError: it is larger; no more of it is read.
    """
    raw = bytearray()
    async for piece in request.stream():
        raw += piece
        if len(raw) > max_bytes:
            raise PayloadTooLargeError(
                f"The body is larger than {max_bytes} bytes", limit_bytes=max_bytes
            )
    return bytes(raw)
