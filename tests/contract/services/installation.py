"""All five services on one stage, each of a build of its own that can be replaced by another.

A service is replaced as a deploy does it: the new process takes work, then the old one is told to
end, and is given the time it takes.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from contract.services.packages import Build, Service
from contract.services.stage import PATIENCE, Stage, stage
from e2e.process import Server
from turnline.protocol import SessionKey
from turnline.store import New


@dataclass(slots=True)
class Installation:
    """The processes, and what build each is of."""

    stage: Stage
    running: dict[Service, Server] = field(default_factory=dict)
    builds: dict[Service, Build] = field(default_factory=dict)
    _started: int = 0

    async def replace(
        self, service: Service, build: Build, meanwhile: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Let a process of another build take a service's place; the old one ends by itself.

        Args:
            meanwhile: awaited while both are there, just before the old one is told to end.
        """
        before = self.running.get(service)
        self._started += 1
        directory = self.stage.directory / f"{service}-{self._started}-{build.name}"
        after = await build.start(service, directory, self.stage.settings)
        try:
            await after.is_ready()
            if meanwhile is not None:
                await meanwhile()
        except BaseException:
            await after.kill()
            raise
        self.running[service], self.builds[service] = after, build
        if before is not None:
            await _told_to_end(before)

    async def arrange(self, builds: Mapping[Service, Build]) -> None:
        """Replace what is of another build than asked for, all at once."""
        async with asyncio.TaskGroup() as tasks:
            for service, build in builds.items():
                if self.builds.get(service) != build:
                    tasks.create_task(self.replace(service, build))

    async def history(self, key: SessionKey) -> list[str]:
        """Give the turns that a session's history holds, oldest first, once nobody holds it."""
        async with asyncio.timeout(PATIENCE):
            while True:
                begun = await self.stage.stores.sessions.begin_turn(key, "look", lease=5.0)
                if isinstance(begun, New):
                    await self.stage.stores.sessions.abandon_turn(begun.claim)
                    return [record.request_id for record in begun.session.history]
                await asyncio.sleep(0.05)


async def _told_to_end(server: Server) -> None:
    try:
        server.signal(signal.SIGTERM)
        ended = await server.ended()
    finally:
        await server.kill()
    assert ended.code == 0, ended.stderr


@asynccontextmanager
async def installation(directory: Path) -> AsyncIterator[Installation]:
    """Open a stage for the length of a block; what was started on it is killed at its end."""
    async with stage(directory) as opened:
        installed = Installation(opened)
        try:
            yield installed
        finally:
            for server in installed.running.values():
                await server.kill()
