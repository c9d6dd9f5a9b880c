"""The in-process stores as the registry opens them: options from settings, nothing to connect."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from turnline.config import Settings
from turnline.protocol.clock import Clock
from turnline.store.memory.connections import MemoryConnectionOptions, MemoryConnectionStore
from turnline.store.memory.replies import MemoryResponseOptions, MemoryResponseStore
from turnline.store.memory.sessions import MemorySessionOptions, MemorySessionStore
from turnline.store.ports import ConnectionStore, ResponseStore, SessionStore


@asynccontextmanager
async def open_response_store(settings: Settings, clock: Clock) -> AsyncIterator[ResponseStore]:
    """Give the store `execution.response_store.in_memory` describes."""
    asked = settings.execution.response_store.in_memory
    options = MemoryResponseOptions(
        ttl=asked.ttl,
        max_replies=asked.max_replies,
        max_reply_bytes=asked.max_bytes,
        # One turn's stream leaves room for other turns' replies.
        max_chunk_bytes_per_reply=max(1, asked.max_bytes // 4),
    )
    yield MemoryResponseStore(options, clock)


@asynccontextmanager
async def open_session_store(settings: Settings, clock: Clock) -> AsyncIterator[SessionStore]:
    """Give the store `session.in_memory` describes."""
    asked = settings.session.in_memory
    options = MemorySessionOptions(
        ttl=asked.ttl,
        max_sessions=asked.max_sessions,
        max_history_turns=settings.session.max_history_turns,
    )
    yield MemorySessionStore(options, clock)


@asynccontextmanager
async def open_connection_store(settings: Settings, clock: Clock) -> AsyncIterator[ConnectionStore]:
    """Give the store `session.connection_store` describes."""
    ttl = settings.session.connection_store.ttl
    yield MemoryConnectionStore(MemoryConnectionOptions(ttl=ttl), clock)
