"""The in-process ResponseStore meets the suite, and keeps to its bounds."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType

import pytest

from turnline.store import ResponseStore
from turnline.store.memory import MemoryResponseOptions, MemoryResponseStore
from turnline.testing.conformance.stores import (
    FakeStoreTime,
    ReplyHarness,
    ReplyLimits,
    ResponseStoreSuite,
)


class _Harness:
    differences: Mapping[str, str] = MappingProxyType({})

    def __init__(self) -> None:
        self.time = FakeStoreTime()

    @asynccontextmanager
    async def open(self, limits: ReplyLimits) -> AsyncIterator[ResponseStore]:
        options = MemoryResponseOptions(
            ttl=limits.ttl_ticks * self.time.tick,
            max_replies=limits.max_replies,
            max_chunks_per_reply=limits.max_chunks,
        )
        yield MemoryResponseStore(options, self.time.clock)

    @asynccontextmanager
    async def peer(self, store: ResponseStore) -> AsyncIterator[ResponseStore]:
        yield store


class TestMemoryResponseStore(ResponseStoreSuite):
    @pytest.fixture
    def harness(self) -> ReplyHarness:
        return _Harness()
