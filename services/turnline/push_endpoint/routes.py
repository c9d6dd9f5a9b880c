"""HTTP routes of the push endpoint; the paths and answers to pods are the guide's."""

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from turnline.errors import Code, InvalidRequestError, TurnlineError
from turnline.frontdoor import error_response
from turnline.push import PUSH_PATH, PUSH_TOKEN_HEADER
from turnline.push_endpoint.handler import PushHandler

USER_PUSH_PATH = "/internal/push/user"

Answer = Callable[[object], Awaitable[dict[str, Any]]]


def push_routes(handler: PushHandler) -> list[Route]:
    """The Starlette routes `POST /internal/push` and `POST /internal/push/user`."""

    async def to_connection(body: object) -> dict[str, Any]:
        await handler.to_connection(body)
        return {"status": "SUCCESS"}

    async def to_user(body: object) -> dict[str, Any]:
        return {"status": "SUCCESS", "reached": await handler.to_user(body)}

    return [
        Route(PUSH_PATH, _endpoint(handler, to_connection), methods=["POST"]),
        Route(USER_PUSH_PATH, _endpoint(handler, to_user), methods=["POST"]),
    ]


def _endpoint(
    handler: PushHandler, answer: Answer
) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            handler.authenticate(request.headers.get(PUSH_TOKEN_HEADER))
            body = orjson.dumps(await answer(_json(await request.body())))
            return Response(body, media_type="application/json")
        except TurnlineError as error:
            return error_response(error)

    return endpoint


def _json(raw: bytes) -> object:
    try:
        body: object = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidRequestError(
            "the body is not JSON", field="body", code=Code.MALFORMED_BODY
        ) from error
    return body
