"""Pushing to a user, over connections that are gone, unreachable or just being opened."""

import asyncio
from collections.abc import Sequence

import pytest

from turnline.errors import StoreUnavailableError, TransportUnavailableError
from turnline.push import ConnectionPush, Frame, PushSignals, UserPush
from turnline.store import Connection
from turnline.store.memory import MemoryConnectionOptions, MemoryConnectionStore
from turnline.telemetry import Metrics
from turnline.testing import FakeClock

FRAMES: list[Frame] = [{"n": 1}, {"n": 2}]


class Pods:
    """The pods of an installation: which sockets they hold, and how they fail.

    Attributes:
        got: frames by connection.
        down: endpoints that refuse.
        gate: a push to a `slow` endpoint waits for it.
        asked: endpoints in the order they were asked.
        took: connections that took frames, as they do.
    """

    def __init__(self) -> None:
        self.got: dict[str, list[Frame]] = {}
        self.held: set[str] = set()
        self.down: set[str] = set()
        self.slow: set[str] = set()
        self.gate = asyncio.Event()
        self.asked: list[str] = []
        self.took = asyncio.Queue[str]()

    def to(self, endpoint: str) -> ConnectionPush:
        return _Pod(self, endpoint)


class _Pod:
    def __init__(self, pods: Pods, endpoint: str) -> None:
        self._pods = pods
        self._endpoint = endpoint

    async def push(self, connection_id: str, frames: Sequence[Frame]) -> bool:
        pods = self._pods
        pods.asked.append(self._endpoint)
        if self._endpoint in pods.down:
            raise TransportUnavailableError("down")
        if self._endpoint in pods.slow:
            await pods.gate.wait()
        if connection_id not in pods.held:
            return False
        pods.got.setdefault(connection_id, []).extend(frames)
        pods.took.put_nowait(connection_id)
        return True


class Rig:
    """A user push over pods and a connection store."""

    def __init__(self, store: MemoryConnectionStore | None = None, *, timeout: float = 5.0) -> None:
        self.clock = FakeClock()
        self.pods = Pods()
        self.store = store or MemoryConnectionStore(MemoryConnectionOptions(), self.clock)
        self.metrics = Metrics(process=False)
        self.push = UserPush(
            connections=self.store,
            routes=self.pods,
            signals=PushSignals(self.metrics),
            clock=self.clock,
            timeout=timeout,
            rest=15.0,
        )

    async def open(self, connection_id: str, *, pod: str = "pod-a", held: bool = True) -> None:
        await self.store.add(Connection(user_id="u", connection_id=connection_id, endpoint=pod))
        if held:
            self.pods.held.add(connection_id)

    async def connection_ids(self) -> list[str]:
        return [one.connection_id for one in await self.store.connections_of("u")]

    def counted(self, result: str) -> float:
        body = self.metrics.render()[0].decode()
        name = f'turnline_frames_pushed_total{{result="{result}"}} '
        (line,) = [line for line in body.splitlines() if line.startswith(name)]
        return float(line.removeprefix(name))


async def test_every_socket_of_the_user_gets_the_frames_in_order() -> None:
    rig = Rig()
    await rig.open("c1", pod="pod-a")
    await rig.open("c2", pod="pod-b")

    assert await rig.push.push("u", FRAMES) == 2
    assert rig.pods.got == {"c1": FRAMES, "c2": FRAMES}
    assert rig.counted("delivered") == 4


async def test_pods_are_pushed_to_at_once() -> None:
    rig = Rig()
    rig.pods.slow = {"pod-a"}
    await rig.open("c1", pod="pod-a")
    await rig.open("c2", pod="pod-b")
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        pushing = tasks.create_task(rig.push.push("u", FRAMES))
        assert await rig.pods.took.get() == "c2"
        assert not pushing.done()
        rig.pods.gate.set()

    assert pushing.result() == 2


async def test_a_socket_its_pod_no_longer_holds_is_forgotten() -> None:
    rig = Rig()
    await rig.open("gone", held=False)
    await rig.open("here")

    assert await rig.push.push("u", FRAMES) == 1
    assert await rig.connection_ids() == ["here"]
    assert rig.counted("stale") == 2


async def test_a_pod_that_does_not_answer_disturbs_no_other_and_is_not_forgotten() -> None:
    rig = Rig()
    rig.pods.down = {"pod-a"}
    await rig.open("c1", pod="pod-a")
    await rig.open("c2", pod="pod-b")

    assert await rig.push.push("u", FRAMES) == 1
    assert await rig.connection_ids() == ["c1", "c2"]
    assert rig.counted("unreachable") == 2


async def test_a_pod_that_takes_too_long_is_as_good_as_unreachable() -> None:
    rig = Rig(timeout=0.01)
    rig.pods.slow = {"pod-a"}
    await rig.open("c1", pod="pod-a")

    assert await rig.push.push("u", FRAMES) == 0


async def test_a_pod_that_did_not_answer_is_left_alone_for_a_while() -> None:
    rig = Rig()
    rig.pods.down = {"pod-a"}
    await rig.open("c1", pod="pod-a")
    await rig.push.push("u", FRAMES)
    rig.pods.down = set()

    assert await rig.push.push("u", FRAMES) == 0
    await rig.clock.advance(15.0)
    assert await rig.push.push("u", FRAMES) == 1
    assert rig.pods.asked == ["pod-a", "pod-a"]


async def test_a_user_without_sockets_is_reached_by_nothing() -> None:
    assert await Rig().push.push("u", FRAMES) == 0


class ForgetfulStore(MemoryConnectionStore):
    """Cannot forget a socket."""

    def __init__(self) -> None:
        super().__init__(MemoryConnectionOptions(), FakeClock())

    async def remove(self, user_id: str, connection_id: str) -> None:
        raise StoreUnavailableError("away")


async def test_a_store_that_cannot_forget_disturbs_no_push() -> None:
    rig = Rig(ForgetfulStore())
    await rig.open("gone", held=False)
    await rig.open("here")

    assert await rig.push.push("u", FRAMES) == 1


async def test_frames_that_reach_nobody_are_held_in_order() -> None:
    rig = Rig()

    assert await rig.push.push_or_hold("u", FRAMES) == 0
    assert list((await rig.store.held("u")).frames) == FRAMES
    assert rig.counted("held") == 2


async def test_frames_that_reach_somebody_are_not_held() -> None:
    rig = Rig()
    await rig.open("c1")

    assert await rig.push.push_or_hold("u", FRAMES) == 1
    assert (await rig.store.held("u")).frames == ()


async def test_frames_for_an_unreachable_pod_are_held_and_not_lost() -> None:
    rig = Rig()
    rig.pods.down = {"pod-a"}
    await rig.open("c1", pod="pod-a")

    assert await rig.push.push_or_hold("u", FRAMES) == 0
    assert list((await rig.store.held("u")).frames) == FRAMES


class RacingStore(MemoryConnectionStore):
    """A socket is opened, and collects what is held, right before frames are held.

    Attributes:
        opens: ids of sockets yet to be opened, one before each held frame.
        late: a socket that collects after the first frame was held instead.
    """

    def __init__(self, opens: Sequence[str], *, late: bool = False) -> None:
        super().__init__(MemoryConnectionOptions(), FakeClock())
        self.opens = list(opens)
        self.late = late
        self.collected: list[Frame] = []

    async def hold(self, user_id: str, frame: Frame) -> None:
        if self.late:
            await super().hold(user_id, frame)
        if self.opens:
            await self.add(
                Connection(user_id="u", connection_id=self.opens.pop(0), endpoint="pod-a")
            )
            held = await self.held("u")
            self.collected += held.frames
            await self.drop_held("u", held.through)
        if not self.late:
            await super().hold(user_id, frame)


async def test_a_socket_opened_between_push_and_hold_gets_the_frames() -> None:
    store = RacingStore(["c1"])
    rig = Rig(store)
    rig.pods.held = {"c1"}

    assert await rig.push.push_or_hold("u", FRAMES) == 1
    assert rig.pods.got == {"c1": FRAMES}
    assert (await store.held("u")).frames == ()


async def test_frames_held_before_reach_a_socket_opened_in_between_too() -> None:
    store = RacingStore([])
    rig = Rig(store)
    await store.hold("u", {"n": 0})
    store.opens.append("c1")
    rig.pods.held = {"c1"}
    assert await rig.push.push_or_hold("u", FRAMES) == 1
    assert store.collected + rig.pods.got["c1"] == [{"n": 0}, *FRAMES]


async def test_frames_a_new_socket_collected_itself_are_not_sent_twice() -> None:
    store = RacingStore(["c1"], late=True)
    rig = Rig(store)
    rig.pods.held = {"c1"}

    assert await rig.push.push_or_hold("u", FRAMES[:1]) == 1
    assert (store.collected, rig.pods.got) == (FRAMES[:1], {})


async def test_sockets_that_come_and_go_in_the_same_moment_do_not_lose_frames() -> None:
    store = RacingStore([f"c{number}" for number in range(100)])
    rig = Rig(store)

    assert await rig.push.push_or_hold("u", FRAMES[:1]) == 0
    assert list((await store.held("u")).frames) == FRAMES[:1]


class AwayStore(MemoryConnectionStore):
    """Answers nothing."""

    def __init__(self) -> None:
        super().__init__(MemoryConnectionOptions(), FakeClock())

    async def connections_of(self, user_id: str) -> Sequence[Connection]:
        raise StoreUnavailableError("away")


async def test_a_store_that_is_away_is_said_to_be_so() -> None:
    with pytest.raises(StoreUnavailableError):
        await Rig(AwayStore()).push.push("u", FRAMES)
