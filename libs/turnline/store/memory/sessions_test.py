"""The in-process SessionStore meets the suite, and keeps to its bounds."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType

import pytest

from turnline.store import SessionStore
from turnline.store.memory import MemorySessionOptions, MemorySessionStore
from turnline.testing.conformance.stores import (
    FakeStoreTime,
    SessionHarness,
    SessionLimits,
    SessionStoreSuite,
)


class _Harness:
    differences: Mapping[str, str] = MappingProxyType({})

    def __init__(self) -> None:
        self.time = FakeStoreTime()

    @asynccontextmanager
    async def open(self, limits: SessionLimits) -> AsyncIterator[SessionStore]:
        options = MemorySessionOptions(
            ttl=limits.ttl_ticks * self.time.tick,
            max_history_turns=limits.max_history,
            max_done_per_session=limits.max_done,
        )
        yield MemorySessionStore(options, self.time.clock)

    @asynccontextmanager
    async def peer(self, store: SessionStore) -> AsyncIterator[SessionStore]:
        yield store


class TestMemorySessionStore(SessionStoreSuite):
    @pytest.fixture
    def harness(self) -> SessionHarness:
        return _Harness()
