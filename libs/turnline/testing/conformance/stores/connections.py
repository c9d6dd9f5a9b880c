"""The suite that defines a ConnectionStore.

Subclass it in a test file of the adapter, override `harness`, and pytest runs every case.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from turnline.store import LOCAL_ENDPOINT, Connection, ConnectionStore
from turnline.testing.conformance.stores.harness import (
    ConnectionHarness,
    ConnectionLimits,
    StoreTime,
    expect_declared_differences,
)


def _socket(
    connection_id: str, *, user_id: str = "u", endpoint: str = LOCAL_ENDPOINT
) -> Connection:
    return Connection(user_id=user_id, connection_id=connection_id, endpoint=endpoint)


async def _ids(store: ConnectionStore, user_id: str = "u") -> list[str]:
    return [each.connection_id for each in await store.connections_of(user_id)]


class ConnectionCases:
    """What every case of ConnectionStore is given.

    `store` is fresh; `other` is what another process would see of it.
    """

    @pytest.fixture
    def harness(self) -> ConnectionHarness:
        """The adapter's; override it."""
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def declared_differences(
        self, request: pytest.FixtureRequest, harness: ConnectionHarness
    ) -> None:
        """Expect failure where the adapter declares it."""
        expect_declared_differences(request, harness.differences)

    @pytest.fixture
    def time(self, harness: ConnectionHarness) -> StoreTime:
        """The store's time."""
        return harness.time

    @pytest.fixture
    async def store(self, harness: ConnectionHarness) -> AsyncIterator[ConnectionStore]:
        """A store with wide limits."""
        async with harness.open(ConnectionLimits()) as store:
            yield store

    @pytest.fixture
    async def other(
        self, harness: ConnectionHarness, store: ConnectionStore
    ) -> AsyncIterator[ConnectionStore]:
        """The same data from another process."""
        async with harness.peer(store) as other:
            yield other


class SocketCases(ConnectionCases):
    """`add`, `remove` and `connections_of`."""

    async def test_an_unknown_user_has_no_sockets(self, store: ConnectionStore) -> None:
        assert list(await store.connections_of("u")) == []

    async def test_a_socket_is_read_as_it_was_added(
        self, store: ConnectionStore, other: ConnectionStore
    ) -> None:
        sockets = [_socket("c1", endpoint="http://[fd00::1]:8000"), _socket("c ü:~2")]
        for socket in sockets:
            await store.add(socket)

        assert list(await other.connections_of("u")) == sockets

    async def test_sockets_come_oldest_first(
        self, store: ConnectionStore, other: ConnectionStore, time: StoreTime
    ) -> None:
        for number, each in enumerate([store, other, store, other]):
            await each.add(_socket(f"c{9 - number}"))
            await time.pass_ticks(1)

        assert await _ids(store) == ["c9", "c8", "c7", "c6"]

    async def test_adding_again_keeps_one_entry_in_its_place(
        self, store: ConnectionStore, time: StoreTime
    ) -> None:
        await store.add(_socket("c1"))
        await time.pass_ticks(1)
        await store.add(_socket("c2"))
        await time.pass_ticks(1)
        await store.add(_socket("c1"))

        assert await _ids(store) == ["c1", "c2"]

    async def test_adding_again_takes_the_new_endpoint(self, store: ConnectionStore) -> None:
        await store.add(_socket("c1", endpoint="http://a"))
        await store.add(_socket("c1", endpoint="http://b"))

        assert list(await store.connections_of("u")) == [_socket("c1", endpoint="http://b")]

    async def test_a_removed_socket_is_gone(
        self, store: ConnectionStore, other: ConnectionStore
    ) -> None:
        await store.add(_socket("c1"))
        await store.add(_socket("c2"))

        await other.remove("u", "c1")

        assert await _ids(store) == ["c2"]

    async def test_removing_an_unknown_socket_does_nothing(self, store: ConnectionStore) -> None:
        await store.add(_socket("c1"))

        await store.remove("u", "c2")
        await store.remove("v", "c1")
        await store.remove("u", "c1")
        await store.remove("u", "c1")

        assert await _ids(store) == []

    async def test_users_share_nothing(self, store: ConnectionStore) -> None:
        users = ["u", "U", "u:c", "~1u", "", "ü {}/#"]
        for user_id in users:
            await store.add(_socket("c", user_id=user_id))
        await store.remove("u", "c")

        kept = [await _ids(store, user_id) for user_id in users]

        assert kept == [[], ["c"], ["c"], ["c"], ["c"], ["c"]]

    async def test_a_user_and_a_socket_are_not_confused(self, store: ConnectionStore) -> None:
        await store.add(_socket("b:c", user_id="a"))
        await store.add(_socket("c", user_id="a:b"))
        await store.remove("a", "b:c")

        assert await _ids(store, "a:b") == ["c"]

    async def test_sockets_added_at_once_are_all_kept(
        self, store: ConnectionStore, other: ConnectionStore
    ) -> None:
        await asyncio.gather(
            *(each.add(_socket(f"c{number}")) for number, each in enumerate([store, other] * 10))
        )

        assert sorted(await _ids(store)) == sorted(f"c{number}" for number in range(20))

    async def test_a_dead_pods_socket_expires(
        self, harness: ConnectionHarness, time: StoreTime
    ) -> None:
        async with harness.open(ConnectionLimits(ttl_ticks=10)) as store:
            await store.add(_socket("c1"))
            await time.pass_ticks(5)
            assert await _ids(store) == ["c1"]
            await time.pass_ticks(6)

            assert await _ids(store) == []

    async def test_a_refreshed_socket_does_not_expire(
        self, harness: ConnectionHarness, time: StoreTime
    ) -> None:
        async with harness.open(ConnectionLimits(ttl_ticks=10)) as store:
            await store.add(_socket("c1"))
            await store.add(_socket("c2"))
            await time.pass_ticks(6)
            await store.add(_socket("c2"))
            await time.pass_ticks(6)

            assert await _ids(store) == ["c2"]

    async def test_reading_does_not_refresh(
        self, harness: ConnectionHarness, time: StoreTime
    ) -> None:
        async with harness.open(ConnectionLimits(ttl_ticks=10)) as store:
            await store.add(_socket("c1"))
            for _ in range(2):
                await time.pass_ticks(6)
                await store.connections_of("u")

            assert await _ids(store) == []


class HeldFrameCases(ConnectionCases):
    """`hold` and `take_held`."""

    async def test_nothing_is_held_at_first(self, store: ConnectionStore) -> None:
        assert list(await store.take_held("u")) == []

    async def test_held_frames_are_given_oldest_first_as_they_were(
        self, store: ConnectionStore, other: ConnectionStore
    ) -> None:
        frames: list[dict[str, Any]] = [
            {"type": "CHAT_RESPONSE", "result": "ü 👋", "status_code": 200},
            {"deep": [1, 2.5, None, {"b": True}]},
            {},
        ]
        for frame, each in zip(frames, [store, other, store], strict=True):
            await each.hold("u", frame)

        assert list(await other.take_held("u")) == frames

    async def test_a_taken_frame_is_not_given_again(
        self, store: ConnectionStore, other: ConnectionStore
    ) -> None:
        await store.hold("u", {"n": 1})
        await store.take_held("u")

        assert list(await other.take_held("u")) == []
        await store.hold("u", {"n": 2})
        assert list(await store.take_held("u")) == [{"n": 2}]

    async def test_frames_are_held_by_user(self, store: ConnectionStore) -> None:
        await store.hold("u", {"n": 1})
        await store.hold("v", {"n": 2})

        assert list(await store.take_held("w")) == []
        assert list(await store.take_held("v")) == [{"n": 2}]
        assert list(await store.take_held("u")) == [{"n": 1}]

    async def test_each_frame_is_taken_by_one(
        self, store: ConnectionStore, other: ConnectionStore
    ) -> None:
        for number in range(10):
            await store.hold("u", {"n": number})

        taken = await asyncio.gather(*(each.take_held("u") for each in [store, other] * 5))

        assert [frame["n"] for frames in taken for frame in frames] == list(range(10))

    async def test_of_too_many_frames_the_oldest_give_way(self, harness: ConnectionHarness) -> None:
        async with harness.open(ConnectionLimits(max_held=3)) as store:
            for number in range(5):
                await store.hold("u", {"n": number})

            taken = await store.take_held("u")

        assert [frame["n"] for frame in taken] == [2, 3, 4]

    async def test_a_held_frame_expires(self, harness: ConnectionHarness, time: StoreTime) -> None:
        async with harness.open(ConnectionLimits(held_ttl_ticks=10)) as store:
            await store.hold("u", {"n": 1})
            await time.pass_ticks(11)

            assert list(await store.take_held("u")) == []

    async def test_each_held_frame_has_its_own_ttl(
        self, harness: ConnectionHarness, time: StoreTime
    ) -> None:
        async with harness.open(ConnectionLimits(held_ttl_ticks=10)) as store:
            await store.hold("u", {"n": 1})
            await time.pass_ticks(6)
            await store.hold("u", {"n": 2})
            await time.pass_ticks(6)

            assert list(await store.take_held("u")) == [{"n": 2}]

    async def test_changing_a_frame_does_not_change_what_is_held(
        self, store: ConnectionStore
    ) -> None:
        frame = {"list": [1]}
        await store.hold("u", frame)
        frame["list"].append(2)

        assert list(await store.take_held("u")) == [{"list": [1]}]


class ConnectionStoreSuite(SocketCases, HeldFrameCases):
    """All cases; `harness` is the one thing to provide."""
