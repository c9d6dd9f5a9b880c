"""The in-process ConnectionStore meets the suite, and keeps to its bounds."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType

import pytest

from turnline.store import Connection, ConnectionStore
from turnline.store.memory import MemoryConnectionOptions, MemoryConnectionStore
from turnline.testing import FakeClock
from turnline.testing.conformance.stores import (
    ConnectionHarness,
    ConnectionLimits,
    ConnectionStoreSuite,
    FakeStoreTime,
)


class _Harness:
    differences: Mapping[str, str] = MappingProxyType({})

    def __init__(self) -> None:
        self.time = FakeStoreTime()

    @asynccontextmanager
    async def open(self, limits: ConnectionLimits) -> AsyncIterator[ConnectionStore]:
        options = MemoryConnectionOptions(
            ttl=limits.ttl_ticks * self.time.tick,
            held_ttl=limits.held_ttl_ticks * self.time.tick,
            max_held_per_user=limits.max_held,
        )
        yield MemoryConnectionStore(options, self.time.clock)

    @asynccontextmanager
    async def peer(self, store: ConnectionStore) -> AsyncIterator[ConnectionStore]:
        yield store


class TestMemoryConnectionStore(ConnectionStoreSuite):
    @pytest.fixture
    def harness(self) -> ConnectionHarness:
        return _Harness()


async def test_of_too_many_users_the_one_longest_without_a_new_frame_gives_way() -> None:
    store = MemoryConnectionStore(MemoryConnectionOptions(max_held_users=2), FakeClock())
    for user_id in ("a", "b", "a", "c"):
        await store.hold(user_id, {"for": user_id})

    assert [len((await store.held(user_id)).frames) for user_id in ("a", "b", "c")] == [2, 0, 1]


async def test_a_frame_that_is_no_json_is_refused() -> None:
    store = MemoryConnectionStore(MemoryConnectionOptions(), FakeClock())

    with pytest.raises(ValueError, match="frame"):
        await store.hold("u", {"x": object()})


async def test_entries_of_users_nobody_asks_for_expire_too() -> None:
    clock = FakeClock()
    store = MemoryConnectionStore(MemoryConnectionOptions(ttl=10, held_ttl=10), clock)
    for number in range(100):
        user_id = f"u{number}"
        await store.add(Connection(user_id=user_id, connection_id="c", endpoint="local"))
        await store.hold(user_id, {})
    await clock.advance(11)

    await store.connections_of("somebody")

    assert store.size == (0, 0)
