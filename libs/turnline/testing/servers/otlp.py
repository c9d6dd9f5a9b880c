"""A collector of traces for tests: takes OTLP over HTTP, and may be made to hang."""

import asyncio
from typing import Any, Self

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from turnline.hosting import WebOptions, WebServer


class OtlpCollector:
    """Use as an async context manager.

    Attributes:
        received: the bodies that came, in order: Protobuf, in which names stand as they are.
        answering: clear it to leave whoever sends without an answer.
    """

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.answering = asyncio.Event()
        self.answering.set()
        self._news = asyncio.Condition()
        self._stop = asyncio.Event()
        self._tasks = asyncio.TaskGroup()
        app = Starlette(routes=[Route("/v1/traces", self._keep, methods=["POST"])])
        self._web = WebServer(app, WebOptions(host="127.0.0.1", port=0, close_seconds=1.0))

    @property
    def url(self) -> str:
        """What `telemetry.otlp_endpoint` is to be."""
        return f"http://127.0.0.1:{self._web.port}"

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._tasks.create_task(self._web.run(self._stop))
        await self._web.started.wait()
        return self

    async def __aexit__(self, *exc_info: Any) -> None:  # noqa: ANN401 - as it is given
        self.answering.set()
        self._stop.set()
        await self._tasks.__aexit__(*exc_info)

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
