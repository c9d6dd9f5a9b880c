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
    """`hold`, `held` and `drop_held`."""

    async def test_nothing_is_held_at_first(self, store: ConnectionStore) -> None:
        assert list((await store.held("u")).frames) == []

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

        assert list((await other.held("u")).frames) == frames

    async def test_a_frame_is_given_until_it_is_dropped(
        self, store: ConnectionStore, other: ConnectionStore
    ) -> None:
        await store.hold("u", {"n": 1})
        held = await store.held("u")
        assert list(held.frames) == [{"n": 1}]
        assert await store.held("u") == await other.held("u") == held

        await other.drop_held("u", held.through)
        assert list((await store.held("u")).frames) == []
        await store.hold("u", {"n": 2})
        assert list((await other.held("u")).frames) == [{"n": 2}]

    async def test_what_came_after_it_was_read_is_not_dropped(
        self, store: ConnectionStore, other: ConnectionStore
    ) -> None:
        for number in (1, 2):
            await store.hold("u", {"n": number})
        held = await store.held("u")
        await other.hold("u", {"n": 3})
        await store.drop_held("u", held.through)

        assert list((await other.held("u")).frames) == [{"n": 3}]

    async def test_what_was_dropped_can_be_dropped_again(self, store: ConnectionStore) -> None:
        await store.hold("u", {"n": 1})
        held = await store.held("u")
        await store.hold("u", {"n": 2})
        for _ in range(2):
            await store.drop_held("u", held.through)

        assert list((await store.held("u")).frames) == [{"n": 2}]

    async def test_dropping_where_nothing_is_held_does_nothing(
        self, store: ConnectionStore
    ) -> None:
        nothing = await store.held("u")
        await store.hold("u", {"n": 1})
        await store.drop_held("u", nothing.through)
        await store.drop_held("v", nothing.through)

        assert list((await store.held("u")).frames) == [{"n": 1}]

    async def test_many_droppers_drop_only_what_they_read(
        self, store: ConnectionStore, other: ConnectionStore
    ) -> None:
        both, read = (store, other), []
        for number in range(10):
            await both[number % 2].hold("u", {"n": number})
            read.append((await store.held("u")).through)
        await asyncio.gather(*(both[at % 2].drop_held("u", read[at]) for at in range(7)))

        assert [frame["n"] for frame in (await store.held("u")).frames] == [7, 8, 9]

    async def test_frames_are_held_by_user(self, store: ConnectionStore) -> None:
        await store.hold("u", {"n": 1})
        await store.hold("v", {"n": 2})

        assert list((await store.held("w")).frames) == []
        assert list((await store.held("v")).frames) == [{"n": 2}]
        assert list((await store.held("u")).frames) == [{"n": 1}]

    async def test_of_too_many_frames_the_oldest_give_way(self, harness: ConnectionHarness) -> None:
        async with harness.open(ConnectionLimits(max_held=3)) as store:
            for number in range(5):
                await store.hold("u", {"n": number})

            taken = (await store.held("u")).frames

        assert [frame["n"] for frame in taken] == [2, 3, 4]

    async def test_a_held_frame_expires(self, harness: ConnectionHarness, time: StoreTime) -> None:
        async with harness.open(ConnectionLimits(held_ttl_ticks=10)) as store:
            await store.hold("u", {"n": 1})
            await time.pass_ticks(11)

            assert list((await store.held("u")).frames) == []

    async def test_each_held_frame_has_its_own_ttl(
        self, harness: ConnectionHarness, time: StoreTime
    ) -> None:
        async with harness.open(ConnectionLimits(held_ttl_ticks=10)) as store:
            await store.hold("u", {"n": 1})
            await time.pass_ticks(6)
            await store.hold("u", {"n": 2})
            await time.pass_ticks(6)

            assert list((await store.held("u")).frames) == [{"n": 2}]

    async def test_changing_a_frame_does_not_change_what_is_held(
        self, store: ConnectionStore
    ) -> None:
        frame = {"list": [1]}
        await store.hold("u", frame)
        frame["list"].append(2)

        assert list((await store.held("u")).frames) == [{"list": [1]}]


class ConnectionStoreSuite(SocketCases, HeldFrameCases):
    """All cases; `harness` is the one thing to provide."""
