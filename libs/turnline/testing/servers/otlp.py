"""A collector of traces for tests: takes OTLP over HTTP, and may be made to hang."""

import asyncio
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from typing_extensions import override

from turnline.testing.servers.loopback_web import LoopbackWeb


class OtlpCollector(LoopbackWeb):
    """Use as an async context manager; `telemetry.otlp_endpoint` is to be its `url`.

    Attributes:
        received: the bodies that came, in order: Protobuf, in which names stand as they are.
        answering: clear it to leave whoever sends without an answer.
    """

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.answering = asyncio.Event()
        self.answering.set()
        self._news = asyncio.Condition()
        app = Starlette(routes=[Route("/v1/traces", self._keep, methods=["POST"])])
        super().__init__(app, close_seconds=1.0)

    @override
    async def __aexit__(self, *exc_info: Any) -> None:
        self.answering.set()
        await super().__aexit__(*exc_info)

    def has(self, name: str) -> bool:
        """Whether a span of that name came."""
        return any(name.encode() in body for body in self.received)

    async def until(self, name: str, *, within: float = 30.0) -> None:
        """Wait until a span of that name came."""
        async with asyncio.timeout(within), self._news:
            await self._news.wait_for(lambda: self.has(name))

    async def _keep(self, request: Request) -> Response:
        body = await request.body()
        await self.answering.wait()
        async with self._news:
            self.received.append(body)
            self._news.notify_all()
        return Response()
