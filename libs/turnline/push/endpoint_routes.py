"""HTTP routes of the push endpoint; the paths and answers to pods are the guide's.

Errors are raised as they are; the app's exception handlers give them their one shape.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from turnline.errors import Code, InvalidRequestError, PayloadTooLargeError
from turnline.push.endpoint import PushHandler
from turnline.push.routes import PUSH_PATH, PUSH_TOKEN_HEADER

USER_PUSH_PATH = "/internal/push/user"
MAX_BODY_BYTES = 16 * 1024 * 1024

_BODY_SECONDS = 10.0

Answer = Callable[[object], Awaitable[dict[str, Any]]]


def push_routes(handler: PushHandler) -> list[Route]:
    """The Starlette routes `POST /internal/push` and `POST /internal/push/user`."""

    async def to_connection(body: object) -> dict[str, Any]:
        await handler.to_connection(body)
        return {"status": "SUCCESS"}

    async def to_user(body: object) -> dict[str, Any]:
        pushed = await handler.to_user(body)
        return {"status": "SUCCESS", "reached": pushed.reached, "held": pushed.held}

    return [
        Route(PUSH_PATH, _endpoint(handler, to_connection), methods=["POST"]),
        Route(USER_PUSH_PATH, _endpoint(handler, to_user), methods=["POST"]),
    ]


def _endpoint(handler: PushHandler, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        # Before the body is read: who has no token costs no memory.
        handler.authenticate(request.headers.get(PUSH_TOKEN_HEADER))
        reply = await answer(_json(await _body(request)))
        return Response(orjson.dumps(reply), media_type="application/json")

    return endpoint


async def _body(request: Request) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > MAX_BODY_BYTES:
                    raise PayloadTooLargeError(
                        f"the body is larger than {MAX_BODY_BYTES} bytes",
                        limit_bytes=MAX_BODY_BYTES,
                    )
    except TimeoutError as error:
        raise InvalidRequestError("the body did not arrive in time", field="body") from error
    return bytes(body)


def _json(raw: bytes) -> object:
    try:
        body: object = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidRequestError(
            "the body is not JSON", field="body", code=Code.MALFORMED_BODY
        ) from error
    return body
