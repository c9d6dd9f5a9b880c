"""Who holds which socket."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from turnline.errors import StoreUnavailableError
from turnline.gateway.hub import SERVICE_RESTART, Hub
from turnline.gateway.rig import Client
from turnline.gateway.sockets import Socket
from turnline.push import Frame
from turnline.store import Connection
from turnline.store.memory import MemoryConnectionOptions, MemoryConnectionStore
from turnline.testing import FakeClock

HELD: Frame = {"type": "CHAT_RESPONSE", "request_id": "r", "result": "kept"}
NOTE: Frame = {"note": 1, "push_id": "n"}


def a_store() -> MemoryConnectionStore:
    return MemoryConnectionStore(MemoryConnectionOptions(), FakeClock())


def a_hub(store: MemoryConnectionStore, *, max_per_user: int = 2) -> Hub:
    return Hub(
        connections=store, endpoint="http://pod:1", max_per_user=max_per_user, pause=lambda: 1.25
    )


@asynccontextmanager
async def a_socket(name: str = "c1", client: Client | None = None) -> AsyncIterator[Socket]:
    client = client or Client()
    async with asyncio.TaskGroup() as tasks:
        yield Socket(
            connection_id=name,
            user_id="u",
            send=client.send,
            close=client.close,
            tasks=tasks,
            max_frames=8,
        )


async def test_a_held_socket_can_be_found_by_its_user_and_pushed_to() -> None:
    store, client = a_store(), Client()
    hub = a_hub(store)
    async with a_socket("c1", client) as socket:
        await hub.add(socket)
        assert await store.connections_of("u") == (
            Connection(user_id="u", connection_id="c1", endpoint="http://pod:1"),
        )
        assert await hub.push("c1", [{"a": 1}])
        assert not await hub.push("c2", [{"a": 1}])

    assert client.seen == [{"a": 1}]


async def test_a_removed_socket_is_found_no_more() -> None:
    store = a_store()
    hub = a_hub(store)
    async with a_socket() as socket:
        await hub.add(socket)
        await hub.remove(socket)

        assert await store.connections_of("u") == ()
        assert not await hub.push("c1", [{"a": 1}])
        assert (hub.count, hub.has_room_for("u")) == (0, True)


async def test_one_user_holds_so_many_sockets_and_no_more() -> None:
    hub = a_hub(a_store(), max_per_user=2)
    async with a_socket("c1") as one, a_socket("c2") as two:
        await hub.add(one)
        assert hub.has_room_for("u")
        await hub.add(two)
        assert not hub.has_room_for("u")
        assert hub.has_room_for("other")
        await hub.remove(one)
        await hub.remove(one)
        assert hub.has_room_for("u")


async def test_a_new_socket_gets_what_was_held_for_its_user_once() -> None:
    store, first, second = a_store(), Client(), Client()
    hub = a_hub(store)
    await store.hold("u", HELD)
    async with a_socket("c1", first) as one, a_socket("c2", second) as two:
        await hub.add(one)
        await hub.add(two)

    assert (first.seen, second.seen) == ([HELD], [])


async def test_what_was_held_stays_if_the_client_has_left_already() -> None:
    store = a_store()
    await store.hold("u", HELD)
    async with a_socket() as socket:
        socket.gone()
        await a_hub(store).add(socket)

    assert (await store.held("u")).frames == (HELD,)


async def test_what_a_client_does_not_read_stays_held() -> None:
    store, client = a_store(), Client()
    client.reading.clear()
    await store.hold("u", HELD)
    async with a_socket("c1", client) as socket:
        await a_hub(store).add(socket)
        kept = (await store.held("u")).frames
        socket.gone()

    assert kept == (HELD,)


async def test_a_slow_client_is_given_what_was_held_once() -> None:
    store, client, note = a_store(), Client(), NOTE
    hub = a_hub(store)
    client.reading.clear()
    await store.hold("u", note)
    async with asyncio.timeout(30), a_socket("c1", client) as socket, asyncio.TaskGroup() as tasks:
        await hub.add(socket)
        refreshing = tasks.create_task(hub.refresh(0.001))
        kept = (await store.held("u")).frames
        client.reading.set()
        while (await store.held("u")).frames:  # noqa: ASYNC110 - the hub's to change
            await asyncio.sleep(0)
        refreshing.cancel()

    assert (kept, client.seen) == ((note,), [note])


class ForgetfulStore(MemoryConnectionStore):
    """Does not answer the first time it is told to drop."""

    def __init__(self) -> None:
        super().__init__(MemoryConnectionOptions(), FakeClock())
        self.asked = 0

    async def drop_held(self, user_id: str, through: str) -> None:
        self.asked += 1
        if self.asked == 1:
            raise StoreUnavailableError("away")
        await super().drop_held(user_id, through)


async def test_a_socket_that_has_what_was_held_stays_though_it_could_not_be_dropped() -> None:
    store, client, note = ForgetfulStore(), Client(), NOTE
    hub = a_hub(store)
    await store.hold("u", note)
    async with asyncio.timeout(30), a_socket("c1", client) as socket, asyncio.TaskGroup() as tasks:
        await hub.add(socket)
        refreshing = tasks.create_task(hub.refresh(0.001))
        while (await store.held("u")).frames:  # noqa: ASYNC110 - the hub's to change
            await asyncio.sleep(0)
        refreshing.cancel()

    assert client.seen == [note]


class BrokenStore(MemoryConnectionStore):
    """Records nothing."""

    def __init__(self) -> None:
        super().__init__(MemoryConnectionOptions(), FakeClock())
        self.calls = asyncio.Queue[str]()
        self.broken = True

    async def add(self, connection: Connection) -> None:
        self.calls.put_nowait(connection.connection_id)
        if self.broken:
            raise StoreUnavailableError("away")
        await super().add(connection)

    async def remove(self, user_id: str, connection_id: str) -> None:
        if self.broken:
            raise StoreUnavailableError("away")
        await super().remove(user_id, connection_id)


async def test_a_socket_that_could_not_be_recorded_leaves_nothing_behind() -> None:
    hub = a_hub(BrokenStore())
    async with a_socket() as socket:
        with pytest.raises(StoreUnavailableError):
            await hub.add(socket)
        await hub.remove(socket)

    assert hub.count == 0


async def test_mappings_are_renewed_although_the_store_was_away() -> None:
    store = BrokenStore()
    hub = a_hub(store)
    async with asyncio.timeout(30), a_socket() as socket, asyncio.TaskGroup() as tasks:
        with pytest.raises(StoreUnavailableError):
            await hub.add(socket)
        refreshing = tasks.create_task(hub.refresh(0.001))
        for _ in range(3):
            assert await store.calls.get() == "c1"
        store.broken = False
        while not await store.connections_of("u"):
            await store.calls.get()
        refreshing.cancel()


async def test_what_was_held_while_the_pod_was_unreachable_is_collected() -> None:
    store, client = a_store(), Client()
    hub = a_hub(store)
    async with asyncio.timeout(30), a_socket("c1", client) as socket, asyncio.TaskGroup() as tasks:
        await hub.add(socket)
        await store.hold("u", HELD)
        refreshing = tasks.create_task(hub.refresh(0.001))
        await client.arrived.wait()
        refreshing.cancel()

    assert client.seen == [HELD]


async def test_at_the_end_every_client_is_told_when_to_come_back() -> None:
    hub, client = a_hub(a_store()), Client()
    async with a_socket("c1", client) as socket:
        await hub.add(socket)
        await hub.close_all(spread=0.0)

    assert client.seen == [
        {
            "status": "RECONNECT",
            "message": "The server is restarting",
            "retry_after": 1.25,
            "type": "SYSTEM_RESPONSE",
        }
    ]
    assert client.closed == (SERVICE_RESTART, "server restarting; reconnect")


async def test_a_client_that_does_not_read_holds_up_no_other_at_the_end() -> None:
    hub, stuck, well = a_hub(a_store(), max_per_user=9), Client(), Client()
    stuck.reading.clear()
    async with a_socket("c1", stuck) as one, a_socket("c2", well) as two:
        await hub.add(one)
        await hub.add(two)
        one.push([{"a": 1}])
        async with asyncio.TaskGroup() as tasks:
            closing = tasks.create_task(hub.close_all(spread=0.0))
            async with asyncio.timeout(30):
                await well.ended.wait()
            assert not stuck.ended.is_set()
            assert not closing.done()
        assert stuck.ended.is_set()
        stuck.reading.set()
