"""The shared stores as the suites want them: over a real server, in real time."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType

from turnline.protocol.clock import SystemClock
from turnline.store import ConnectionStore, ResponseStore, SessionStore
from turnline.store.valkey import (
    ValkeyConnectionOptions,
    ValkeyConnectionStore,
    ValkeyResponseOptions,
    ValkeyResponseStore,
    ValkeySessionOptions,
    ValkeySessionStore,
)
from turnline.store.valkey.commands import Commands
from turnline.store.valkey.server import ServerOptions, open_commands, open_listener
from turnline.testing.conformance.stores import ConnectionLimits, ReplyLimits, SessionLimits
from turnline.testing.servers.valkey import ValkeyServer

CLOCK = SystemClock()
_NONE: Mapping[str, str] = MappingProxyType({})
_numbers = itertools.count(1)


class RealTime:
    """Time that passes by itself, in ticks far longer than a call."""

    tick = 0.05
    patience = 5.0

    async def pass_ticks(self, ticks: float) -> None:
        """Let them pass."""
        await asyncio.sleep(ticks * self.tick)

    async def calm(self) -> None:
        """Wait for long enough that what is on its way arrives."""
        await asyncio.sleep(self.tick)


def at(server: ValkeyServer, *, deadline: float = 5.0) -> ServerOptions:
    """Name a server as settings do."""
    return ServerOptions(setting="session.valkey.url", url=server.url, deadline=deadline)


async def names_without_expiry(commands: Commands, prefix: str) -> list[bytes]:
    """Give what is kept for ever below a prefix, which must be nothing."""
    found: list[bytes] = await commands.call("KEYS", f"{prefix}*")
    return [name for name in found if await commands.call("PTTL", name) == -1]


async def remove_all(commands: Commands, prefix: str) -> None:
    """Remove what a test left below a prefix."""
    for name in await commands.call("KEYS", f"{prefix}*"):
        await commands.call("DEL", name)


@asynccontextmanager
async def open_replies(
    server: ServerOptions, options: ValkeyResponseOptions
) -> AsyncIterator[ValkeyResponseStore]:
    """Open a ResponseStore with connections of its own."""
    async with open_commands(server, CLOCK) as commands, open_listener(server, CLOCK) as listener:
        yield ValkeyResponseStore(options, commands, listener)


@asynccontextmanager
async def open_sessions(
    server: ServerOptions, options: ValkeySessionOptions
) -> AsyncIterator[ValkeySessionStore]:
    """Open a SessionStore with connections of its own."""
    async with open_commands(server, CLOCK) as commands, open_listener(server, CLOCK) as listener:
        yield ValkeySessionStore(options, commands, listener)


@asynccontextmanager
async def open_connections(
    server: ServerOptions, options: ValkeyConnectionOptions
) -> AsyncIterator[ValkeyConnectionStore]:
    """Open a ConnectionStore with a connection of its own."""
    async with open_commands(server, CLOCK) as commands:
        yield ValkeyConnectionStore(options, commands)


class _Rig:
    """What the three harnesses share; each store gets a prefix of its own."""

    def __init__(self, server: ValkeyServer, differences: Mapping[str, str] = _NONE) -> None:
        self.time = RealTime()
        self.differences = differences
        self._server = at(server)

    @asynccontextmanager
    async def _prefix(self) -> AsyncIterator[str]:
        """Give a prefix; whatever is left below it must expire by itself."""
        prefix = f"t{next(_numbers)}:"
        yield prefix
        async with open_commands(self._server, CLOCK) as commands:
            lasting = await names_without_expiry(commands, prefix)
            await remove_all(commands, prefix)
        if lasting:
            raise AssertionError(f"kept for ever: {lasting}")


class ReplyRig(_Rig):
    """Makes ResponseStores for the suite."""

    @asynccontextmanager
    async def open(self, limits: ReplyLimits) -> AsyncIterator[ResponseStore]:
        """Give an empty store."""
        async with self._prefix() as prefix:
            self._options = ValkeyResponseOptions(
                prefix=prefix,
                ttl=limits.ttl_ticks * self.time.tick,
                max_chunks=limits.max_chunks,
            )
            async with open_replies(self._server, self._options) as store:
                yield store

    @asynccontextmanager
    async def peer(self, store: ResponseStore) -> AsyncIterator[ResponseStore]:
        """Give another store over what was opened last, with connections of its own."""
        async with open_replies(self._server, self._options) as other:
            yield other


class SessionRig(_Rig):
    """Makes SessionStores for the suite."""

    @asynccontextmanager
    async def open(self, limits: SessionLimits) -> AsyncIterator[SessionStore]:
        """Give an empty store."""
        async with self._prefix() as prefix:
            self._options = ValkeySessionOptions(
                prefix=prefix,
                ttl=limits.ttl_ticks * self.time.tick,
                max_history_turns=limits.max_history,
                max_done_per_session=limits.max_done,
            )
            async with open_sessions(self._server, self._options) as store:
                yield store

    @asynccontextmanager
    async def peer(self, store: SessionStore) -> AsyncIterator[SessionStore]:
        """Give another store over what was opened last, with connections of its own."""
        async with open_sessions(self._server, self._options) as other:
            yield other


class ConnectionRig(_Rig):
    """Makes ConnectionStores for the suite."""

    @asynccontextmanager
    async def open(self, limits: ConnectionLimits) -> AsyncIterator[ConnectionStore]:
        """Give an empty store."""
        async with self._prefix() as prefix:
            self._options = ValkeyConnectionOptions(
                prefix=prefix,
                ttl=limits.ttl_ticks * self.time.tick,
                held_ttl=limits.held_ttl_ticks * self.time.tick,
                max_held_per_user=limits.max_held,
            )
            async with open_connections(self._server, self._options) as store:
                yield store

    @asynccontextmanager
    async def peer(self, store: ConnectionStore) -> AsyncIterator[ConnectionStore]:
        """Give another store over what was opened last, with a connection of its own."""
        async with open_connections(self._server, self._options) as other:
            yield other
