"""The web server of a fixture, on loopback for as long as a block."""

import asyncio
from typing import Any, Self

from starlette.types import ASGIApp

from turnline.hosting import WebOptions, WebServer


class LoopbackWeb:
    """What fixtures that answer HTTP are made of; use as an async context manager.

    Args:
        port: 0: any free one.
        close_seconds: how long running requests may take to end.
    """

    def __init__(self, app: ASGIApp, *, port: int = 0, close_seconds: float = 3.0) -> None:
        options = WebOptions(host="127.0.0.1", port=port, close_seconds=close_seconds)
        self._web = WebServer(app, options)
        self._stop = asyncio.Event()
        self._tasks = asyncio.TaskGroup()

    @property
    def url(self) -> str:
        """Where callers reach it."""
        return f"http://127.0.0.1:{self._web.port}"

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._tasks.create_task(self._web.run(self._stop))
        await self._web.started.wait()
        return self

    async def __aexit__(self, *exc_info: Any) -> None:  # noqa: ANN401 - as it is given
        """Stop it, and wait for its requests to end."""
        self._stop.set()
        await self._tasks.__aexit__(*exc_info)
