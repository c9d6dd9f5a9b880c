"""The shared stores as the registry opens them: which server, from which block of the settings.

`redis` and `valkey` are one protocol and one adapter; the type chooses the block.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from turnline.config import Settings
from turnline.config.stores import SessionRedis
from turnline.protocol.clock import Clock
from turnline.store.ports import ConnectionStore, ResponseStore, SessionStore
from turnline.store.valkey.bookkeeping import ValkeyBookkeeping, ValkeyBookkeepingOptions
from turnline.store.valkey.connections import ValkeyConnectionOptions, ValkeyConnectionStore
from turnline.store.valkey.replies import ValkeyResponseOptions, ValkeyResponseStore
from turnline.store.valkey.server import ServerOptions, open_commands, open_listener
from turnline.store.valkey.sessions import ValkeySessionOptions, ValkeySessionStore


@asynccontextmanager
async def open_response_store(settings: Settings, clock: Clock) -> AsyncIterator[ResponseStore]:
    """Give the store `execution.response_store` describes.

    Raises:
        ConfigurationError: see `open_commands`.
    """
    asked = settings.execution.response_store
    block = asked.redis if asked.type == "redis" else asked.valkey
    server = ServerOptions(setting=f"execution.response_store.{asked.type}.url", url=block.url)
    options = ValkeyResponseOptions(prefix=block.prefix, ttl=block.ttl)
    async with (
        open_commands(server, clock) as commands,
        open_listener(server, clock) as listener,
    ):
        yield ValkeyResponseStore(options, commands, listener)


@asynccontextmanager
async def open_session_store(settings: Settings, clock: Clock) -> AsyncIterator[SessionStore]:
    """Give the store `session` describes.

    Raises:
        ConfigurationError: see `open_commands`.
    """
    block, server = _session_server(settings)
    options = ValkeySessionOptions(
        prefix=block.prefix, ttl=block.ttl, max_history_turns=settings.session.max_history_turns
    )
    async with (
        open_commands(server, clock) as commands,
        open_listener(server, clock) as listener,
    ):
        yield ValkeySessionStore(options, commands, listener)


@asynccontextmanager
async def open_connection_store(settings: Settings, clock: Clock) -> AsyncIterator[ConnectionStore]:
    """Give the store `session.connection_store` describes, on the server of the sessions.

    Raises:
        ConfigurationError: see `open_commands`.
    """
    block, server = _session_server(settings)
    options = ValkeyConnectionOptions(
        prefix=block.prefix, ttl=settings.session.connection_store.ttl
    )
    async with open_commands(server, clock) as commands:
        yield ValkeyConnectionStore(options, commands)


@asynccontextmanager
async def open_bookkeeping(settings: Settings, clock: Clock) -> AsyncIterator[ValkeyBookkeeping]:
    """Give the books of the transport's queues, on the server of the sessions.

    Raises:
        ConfigurationError: see `open_commands`.
    """
    block, server = _session_server(settings)
    # What the broker drops at its age, nobody finishes.
    keep = settings.execution.queues.kafka.max_age or block.ttl
    options = ValkeyBookkeepingOptions(prefix=block.prefix, keep=keep)
    async with open_commands(server, clock) as commands:
        yield ValkeyBookkeeping(options, commands)


def _session_server(settings: Settings) -> tuple[SessionRedis, ServerOptions]:
    """Give the block that the type of the sessions chooses, and the server it names."""
    asked = settings.session
    block = asked.redis if asked.type == "redis" else asked.valkey
    return block, ServerOptions(setting=f"session.{asked.type}.url", url=block.url)
