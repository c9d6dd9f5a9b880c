"""The operator's routes over queues: depths and dead letters, behind a token of their own.

Served by a process that owns the queues' transport.  Without `api.admin_token` they answer 403.
A dead letter is listed without its prompt; `show` gives the whole of it, since whoever holds the
admin token may redrive it anyway.
"""

import base64
import hmac
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from turnline.config import Settings
from turnline.errors import (
    ForbiddenError,
    InvalidRequestError,
    NotFoundError,
    TurnlineError,
    UnauthenticatedError,
)
from turnline.frontdoor.http import error_response
from turnline.transport import DeadLetter, Queue, QueueStats, Transport

MAX_LISTED = 1_000

Endpoint = Callable[[Request], Awaitable[Any]]


def admin_routes(settings: Settings, transport: Transport) -> list[Route]:
    """Make the routes over the queues of a transport, behind `api.admin_token`."""
    secret = settings.api.admin_token
    token = secret.get_secret_value() if secret else ""
    return Admin(transport=transport, token=token).routes()


class Admin:
    """Answers for the queues of one transport."""

    def __init__(self, *, transport: Transport, token: str) -> None:
        """Wire it; an empty `token` turns all routes off."""
        self._transport = transport
        self._token = token.encode()

    def routes(self) -> list[Route]:
        """The Starlette routes, all under /admin."""
        letter = "/admin/dlq/{queue}/{letter_id}"
        return [
            self._route("/admin/queues", "GET", self._queues),
            self._route("/admin/dlq/{queue}", "GET", self._list),
            self._route("/admin/dlq/{queue}", "DELETE", self._purge_all),
            self._route(letter, "GET", self._show),
            self._route(letter, "DELETE", self._purge),
            self._route(letter + "/redrive", "POST", self._redrive),
        ]

    def _route(self, path: str, method: str, endpoint: Endpoint) -> Route:
        async def answer(request: Request) -> Response:
            try:
                self._authenticate(request)
                body = orjson.dumps(await endpoint(request))
                return Response(body, media_type="application/json")
            except TurnlineError as error:
                return error_response(error)

        return Route(path, answer, methods=[method])

    def _authenticate(self, request: Request) -> None:
        if not self._token:
            raise ForbiddenError("the admin routes are off: api.admin_token is not configured")
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        given = token.strip().encode() if scheme.lower() == "bearer" else b""
        if not hmac.compare_digest(self._token, given):
            raise UnauthenticatedError("invalid admin token")

    def _queue(self, request: Request) -> Queue:
        name = request.path_params["queue"]
        if name not in ("input", "output"):
            raise NotFoundError("no such queue; use input or output", field="queue")
        return self._transport.input if name == "input" else self._transport.output

    async def _queues(self, _: Request) -> dict[str, Any]:
        queues = {"input": self._transport.input, "output": self._transport.output}
        return {name: _stats_json(await queue.stats()) for name, queue in queues.items()}

    async def _list(self, request: Request) -> dict[str, Any]:
        limit = _limit(request.query_params.get("limit", "100"))
        after = request.query_params.get("after", "")
        letters = await self._queue(request).dead_letters.list(limit=limit, after=after)
        return {"letters": [_summary(letter) for letter in letters]}

    async def _show(self, request: Request) -> dict[str, Any]:
        letter = await self._queue(request).dead_letters.show(request.path_params["letter_id"])
        return {**_summary(letter), "raw": base64.b64encode(letter.raw).decode()}

    async def _redrive(self, request: Request) -> dict[str, Any]:
        await self._queue(request).dead_letters.redrive(request.path_params["letter_id"])
        return {"redriven": 1}

    async def _purge(self, request: Request) -> dict[str, Any]:
        letters = self._queue(request).dead_letters
        return {"purged": await letters.purge(request.path_params["letter_id"])}

    async def _purge_all(self, request: Request) -> dict[str, Any]:
        return {"purged": await self._queue(request).dead_letters.purge()}


def _limit(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= MAX_LISTED):
        raise InvalidRequestError(f"limit must be 1 to {MAX_LISTED}", field="limit")
    return int(text)


def _stats_json(stats: QueueStats) -> dict[str, Any]:
    return {
        "waiting": stats.waiting,
        "in_flight": stats.in_flight,
        "dead": stats.dead,
        "oldest_age_seconds": round(stats.oldest_age_seconds, 3),
    }


def _summary(letter: DeadLetter) -> dict[str, Any]:
    envelope = letter.envelope
    return {
        "id": letter.id,
        "reason": letter.reason,
        "at": letter.at,
        "attempt": letter.attempt,
        "request_id": envelope.request_id if envelope else None,
        "session_id": envelope.session_id if envelope else None,
        "user_id": envelope.user_id if envelope else None,
        "bytes": len(letter.raw),
    }
