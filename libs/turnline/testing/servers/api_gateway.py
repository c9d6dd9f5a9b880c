"""API Gateway's `@connections` for tests: what a function may do with the sockets of an API.

Answers as documented: 200, 410 for a socket that is gone, 413 for more than 128 KB, and refusals
that a test asks for.
https://docs.aws.amazon.com/apigateway/latest/developerguide/apigateway-how-to-call-websocket-api-connections.html
"""

import asyncio
import json
from collections import defaultdict, deque
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from typing_extensions import override

from turnline.testing.servers.loopback_web import LoopbackWeb

STAGE = "live"
MAX_BYTES = 128 * 1024

_ERRORS = {
    403: "ForbiddenException",
    410: "GoneException",
    413: "PayloadTooLargeException",
    429: "LimitExceededException",
    500: "InternalServerErrorException",
}


class ApiGateway(LoopbackWeb):
    """The sockets of one WebSocket API; use as an async context manager.

    Attributes:
        frames: what each socket was sent, decoded, by its id.
        calls: every id that was posted to, in order.
    """

    def __init__(self) -> None:
        self.frames: dict[str, list[Any]] = {}
        self.calls: list[str] = []
        self._refusals: dict[str, deque[int]] = defaultdict(deque)
        self._news = asyncio.Condition()
        route = Route(
            f"/{STAGE}/@connections/{{name}}", self._answer, methods=["POST", "GET", "DELETE"]
        )
        super().__init__(Starlette(routes=[route]))

    @property
    @override
    def url(self) -> str:
        """The management endpoint."""
        return f"{super().url}/{STAGE}"

    def open(self, name: str) -> None:
        """Hold a socket."""
        self.frames[name] = []

    def close(self, name: str) -> None:
        """Hold it no longer; what it was sent is forgotten."""
        self.frames.pop(name, None)

    def refuse(self, name: str, *statuses: int) -> None:
        """Answer the next posts to a socket with these statuses, one each."""
        self._refusals[name].extend(statuses)

    async def until(self, name: str, count: int, *, within: float = 30.0) -> list[Any]:
        """Wait until a socket was sent so many frames; give them."""
        async with asyncio.timeout(within), self._news:
            await self._news.wait_for(lambda: len(self.frames.get(name, [])) >= count)
        return self.frames[name]

    async def until_done(self, name: str, *, within: float = 30.0) -> list[Any]:
        """Wait until a socket was sent the end of a turn; give all its frames."""

        def ended() -> bool:
            frames = self.frames.get(name, [])
            return any(f.get("done") or f.get("type") == "CHAT_RESPONSE" for f in frames)

        async with asyncio.timeout(within), self._news:
            await self._news.wait_for(ended)
        return self.frames[name]

    async def _answer(self, request: Request) -> Response:
        name = request.path_params["name"]
        body = await request.body()
        if request.method == "POST":
            self.calls.append(name)
            if waiting := self._refusals[name]:
                return error_answer(waiting.popleft())
        if name not in self.frames:
            return error_answer(410)
        if request.method == "DELETE":
            self.close(name)
            return Response(status_code=204)
        if request.method == "GET":
            return Response(b'{"connectedAt": "2026-01-01T00:00:00Z"}')
        if len(body) > MAX_BYTES:
            return error_answer(413)
        async with self._news:
            self.frames[name].append(json.loads(body))
            self._news.notify_all()
        return Response(status_code=200)


def error_answer(status: int) -> Response:
    """Give a refusal as API Gateway words it."""
    headers = {"x-amzn-ErrorType": _ERRORS.get(status, "InternalServerErrorException")}
    return Response(b'{"message": null}', status_code=status, headers=headers)
