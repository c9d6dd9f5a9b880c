"""For this room's tests: an entry point of ECS in a process of its own."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx

from turnline.aws.rig import NO_MORE, Cloud
from turnline.testing.servers.process import end

_START_SECONDS = 90.0
_STOP_SECONDS = 30.0
_LOOK_SECONDS = 0.05
# A child finds modules where this process does, and first in its own folder.
_START = (
    "import sys, runpy; sys.path[:] = {path!r}; runpy.run_module({module!r}, run_name='__main__')"
)


class Container:
    """One process.

    Attributes:
        port: that it listens on.
    """

    def __init__(self, cloud: Cloud, module: str, more: Mapping[str, str]) -> None:
        self._log = cloud.folder / f"{module}.log"
        path = [str(cloud.folder), *sys.path]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START.format(path=path, module=module)],
                cwd=cloud.folder,
                env={
                    **cloud.environment,
                    "AK_API__HOST": "127.0.0.1",
                    "AK_API__PORT": "0",
                    "AK_LOGGING__FORMAT": "json",
                    **more,
                },
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        self.port = 0

    @property
    def log(self) -> str:
        """What it wrote."""
        return self._log.read_text(errors="replace")

    def events(self, name: str) -> list[dict[str, Any]]:
        """Give the lines of one event in its log."""
        lines = [line for line in self.log.splitlines() if line.startswith("{")]
        return [event for event in map(json.loads, lines) if event.get("event") == name]

    async def until_ready(self) -> None:
        """Wait until it serves."""
        async with asyncio.timeout(_START_SECONDS):
            while not (ready := self.events("process.ready")):
                if self._process.poll() is not None:
                    raise RuntimeError(f"it ended:\n{self.log}")
                await asyncio.sleep(_LOOK_SECONDS)
        self.port = int(ready[0]["port"])

    async def ended(self) -> int:
        """Wait until it ends; give its exit code."""
        return await asyncio.to_thread(self._process.wait, _START_SECONDS)

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> int:
        """End it; give its exit code."""
        if self._process.poll() is None:
            await asyncio.to_thread(end, self._process, how, within=_STOP_SECONDS)
        return int(self._process.returncode)

    def client(self) -> httpx.AsyncClient:
        """Make a client of its routes."""
        return httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", timeout=60.0)


@asynccontextmanager
async def container(
    cloud: Cloud, module: str, more: Mapping[str, str] = NO_MORE
) -> AsyncIterator[Container]:
    """Run a file of the application for the length of the block."""
    process = Container(cloud, module, more)
    try:
        await process.until_ready()
        yield process
    finally:
        await process.stop()
