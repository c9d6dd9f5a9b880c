"""Errors as HTTP answers: one shape on every route of every service.

`{"detail": {"error", "code", "retry", ...}}` with the statuses of the failure table, `Retry-After`
when a time is known, `WWW-Authenticate` on 401.  `web_app` gives the framework's own errors, the
unexpected and requests that are cut off the same shape.
"""

import asyncio
import math
from collections.abc import Awaitable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, ExceptionHandler, Message, Receive, Scope, Send

from turnline.errors import CODES, Code, DrainingError, InternalError, RetryHint, TurnlineError
from turnline.frontdoor.frames import JsonDict, error_detail
from turnline.protocol import Failure

_CUT_OFF = (
    "The server shut down before it had the answer, and may have taken a turn; "
    "try again with the same request_id"
)
_BODILESS = (204, 205, 304)
_CLIENT_CLOSED_REQUEST = 499
_HTTP_CODES = MappingProxyType(
    {
        401: Code.UNAUTHENTICATED,
        403: Code.FORBIDDEN,
        404: Code.NOT_FOUND,
        405: Code.METHOD_NOT_ALLOWED,
        413: Code.PAYLOAD_TOO_LARGE,
    }
)


def json_response(
    status: int, body: JsonDict, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer with JSON; a status that must not have a body (204, 205, 304) gets none."""
    content = b"" if status in _BODILESS else orjson.dumps(body)
    media_type = "application/json" if content else None
    return Response(content, status_code=status, media_type=media_type, headers=headers)


def error_response(
    error: TurnlineError,
    *,
    session_id: str = "",
    request_id: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Answer with an error: status from the failure table, `{"detail": {...}}`, Retry-After."""
    failure = Failure.from_error(error)
    return failure_response(failure, session_id=session_id, request_id=request_id, headers=headers)


def failure_response(
    failure: Failure,
    *,
    session_id: str = "",
    request_id: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Answer with a failure, as `error_response` does with an error."""
    detail = error_detail(failure, session_id=session_id, request_id=request_id)
    every = {**failure_headers(failure), **(headers or {})}
    return json_response(failure.status_code, {"detail": detail}, every)


def failure_headers(failure: Failure) -> dict[str, str]:
    """Give the headers a failure calls for; none for most."""
    headers: dict[str, str] = {}
    if failure.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(failure.retry_after)))
    if failure.code == Code.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = "Bearer"
    return headers


async def _on_turnline_error(_: Request, error: Exception) -> Response:
    if not isinstance(error, TurnlineError):
        raise error
    return error_response(error)


async def _on_http_exception(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    status = error.status_code
    code = _HTTP_CODES.get(status, Code.INTERNAL if status >= 500 else Code.INVALID_REQUEST)
    failure = Failure(
        code=code.value,
        message=error.detail,
        status_code=status,
        retry=RetryHint.NOW if status == 408 else CODES[code].retry,
    )
    return failure_response(failure, headers=error.headers)


async def _on_unexpected(_: Request, __: Exception) -> Response:
    """Say nothing of the fault; Starlette raises it on, and the server logs its traceback."""
    return error_response(InternalError())


async def _on_disconnect(_: Request, __: Exception) -> Response:
    """End a request whose client left while sending it; nobody reads this."""
    return Response(status_code=_CLIENT_CLOSED_REQUEST)


class _CutOff:
    """Answers for a request that is cancelled, as what still runs when a drain is over is.

    The server would answer it with a 500 of its own.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answered = False

        def noted(message: Message) -> Awaitable[None]:
            nonlocal answered
            answered = True
            return send(message)

        try:
            await self._app(scope, receive, noted)
        except asyncio.CancelledError:
            if scope["type"] == "http" and not answered:
                await error_response(DrainingError(_CUT_OFF))(scope, receive, send)
            raise


_EXCEPTION_HANDLERS: Mapping[Any, ExceptionHandler] = MappingProxyType(
    {
        TurnlineError: _on_turnline_error,
        HTTPException: _on_http_exception,
        ClientDisconnect: _on_disconnect,
        Exception: _on_unexpected,
    }
)


def web_app(routes: Sequence[BaseRoute]) -> Starlette:
    """Make an app of routes whose every error has the one shape; more may be added to its router.

    Takes all HTTP routes of a process.
    """
    app = Starlette(
        routes=routes,
        exception_handlers=_EXCEPTION_HANDLERS,
        middleware=[Middleware(_CutOff)],
    )
    # A redirect to the path without its slash would turn a misspelled POST into two requests.
    app.router.redirect_slashes = False
    return app
