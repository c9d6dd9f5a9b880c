"""The consume loop over the in_memory transport: slots, settlements, drain."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from turnline.errors import (
    Code,
    FencedError,
    InternalError,
    TransportUnavailableError,
)
from turnline.hosting import Backoff, ConsumeLoop, ConsumeOptions, LeaseKeeper, leave_behind
from turnline.protocol import ChatRequest, Envelope
from turnline.protocol.clock import Clock, SystemClock
from turnline.telemetry import Metrics
from turnline.testing import FakeClock
from turnline.testing.failing_queue import FailingQueue, Fault, raising
from turnline.transport import (
    Ack,
    Bury,
    Delivery,
    Queue,
    Release,
    Retry,
    Settlement,
)
from turnline.transport.in_memory import InMemoryOptions, InMemoryQueue, InMemoryTransport

Handler = Callable[[Delivery], Awaitable[Settlement]]

DEADLINE = 10.0
PROMPT = "words of a user"


def request(session_id: str = "s1", request_id: str = "r1") -> Envelope:
    payload = ChatRequest(prompt=PROMPT)
    return Envelope(request_id=request_id, session_id=session_id, payload=payload)


@pytest.fixture
async def queue() -> AsyncIterator[InMemoryQueue]:
    async with opened(SystemClock()) as queue:
        yield queue


@asynccontextmanager
async def opened(clock: Clock, *, ack_wait: float = 60.0) -> AsyncIterator[InMemoryQueue]:
    async with InMemoryTransport(InMemoryOptions(ack_wait=ack_wait), clock) as transport:
        yield transport.input


@dataclass(slots=True, kw_only=True)
class Running:
    """A loop at work.

    Attributes:
        stop: tells it to drain.
        task: ends when it has.
    """

    loop: ConsumeLoop
    stop: asyncio.Event
    task: asyncio.Task[None]

    async def drained(self) -> None:
        self.stop.set()
        await self.task


@asynccontextmanager
async def consuming(
    queue: Queue,
    handler: Handler,
    *,
    concurrency: int = 10,
    consumers: int = 2,
    grace: float = 5.0,
    settle_timeout: float = 5.0,
    answer_exhausted: Callable[[Delivery], Awaitable[None]] | None = None,
) -> AsyncIterator[Running]:
    """Run a loop for the length of the block, and drain it at its end."""
    metrics = Metrics(process=False)
    keeper = LeaseKeeper(metrics)
    loop = ConsumeLoop(
        queue=queue,
        handler=handler,
        keeper=keeper,
        metrics=metrics,
        answer_exhausted=answer_exhausted,
        options=ConsumeOptions(
            name="input",
            consumers=consumers,
            max_concurrency=concurrency,
            lease_seconds=60.0,
            max_attempts=3,
            backoff=Backoff(base=0.0),
            settle_timeout=settle_timeout,
        ),
    )
    stop = asyncio.Event()
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        kept = tasks.create_task(keeper.run())
        running = Running(loop=loop, stop=stop, task=tasks.create_task(loop.run(stop, grace=grace)))
        try:
            yield running
        finally:
            stop.set()
            await asyncio.wait([running.task])
            kept.cancel()


@dataclass(slots=True)
class Work:
    """A handler that notes attempts, and waits while its gate is closed."""

    settlements: list[Settlement] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)
    started: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    now: int = 0
    most: int = 0

    async def __call__(self, delivery: Delivery) -> Settlement:
        self.attempts.append(delivery.attempt)
        self.now += 1
        self.most = max(self.most, self.now)
        self.started.release()
        try:
            await self.gate.wait()
        finally:
            self.now -= 1
        return self.settlements.pop(0) if self.settlements else Ack()

    async def has_started(self, count: int = 1) -> None:
        for _ in range(count):
            await self.started.acquire()


def opened_work(*settlements: Settlement) -> Work:
    work = Work(list(settlements))
    work.gate.set()
    return work


async def test_what_is_handled_is_removed(queue: InMemoryQueue) -> None:
    work = opened_work()
    await queue.send(request())

    async with consuming(queue, work):
        await work.has_started()

    stats = await queue.stats()
    assert (stats.waiting, stats.in_flight, stats.dead) == (0, 0, 0)


async def test_no_more_is_taken_than_there_are_slots(queue: InMemoryQueue) -> None:
    work = Work()
    for index in range(10):
        await queue.send(request(f"s{index}", f"r{index}"))

    async with consuming(queue, work, concurrency=3) as running:
        await work.has_started(3)
        await FakeClock().run_ready()
        stats = await queue.stats()
        assert (running.loop.in_flight, stats.in_flight, stats.waiting) == (3, 3, 7)
        work.gate.set()
        await work.has_started(7)

    assert work.most == 3


async def test_draining_takes_nothing_new_and_finishes_what_runs(queue: InMemoryQueue) -> None:
    work = Work()
    for index in range(3):
        await queue.send(request(f"s{index}", f"r{index}"))

    async with consuming(queue, work, concurrency=1) as running:
        await work.has_started()
        reading = [running.loop.reading]
        running.stop.set()
        await FakeClock().run_ready()
        reading.append(running.loop.reading)
        work.gate.set()
        await running.task

    assert reading == [True, False]
    assert work.attempts == [1]
    assert (await queue.stats()).waiting == 2


async def test_what_outlasts_the_grace_is_handed_back_unspent_and_finished_elsewhere(
    queue: InMemoryQueue,
) -> None:
    work, other = Work(), opened_work()
    await queue.send(request())
    async with consuming(queue, work, grace=0.0) as running:
        await work.has_started()
        await running.drained()
    assert (await queue.stats()).waiting == 1

    async with consuming(queue, other):
        await other.has_started()

    assert (work.attempts, other.attempts) == ([1], [1])
    assert (await queue.stats()).waiting == 0


async def test_a_cancelled_loop_hands_back_what_it_works_on(queue: InMemoryQueue) -> None:
    work = Work()
    await queue.send(request())

    async with consuming(queue, work) as running:
        await work.has_started()
        running.task.cancel()
        await asyncio.wait([running.task])

    assert running.task.cancelled()
    stats = await queue.stats()
    assert (stats.waiting, stats.in_flight) == (1, 0)


async def test_code_that_does_not_stop_holds_a_drain_up_for_a_moment_only(
    queue: InMemoryQueue,
) -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def stubborn() -> None:
        while not release.is_set():
            started.set()
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async def handler(_: Delivery) -> Settlement:
        async with leave_behind(stubborn(), after=3600):
            await asyncio.Event().wait()
        return Ack()

    await queue.send(request())
    try:
        async with consuming(queue, handler, grace=0.0) as running:
            await started.wait()
            await running.drained()
        stats = await queue.stats()
    finally:
        release.set()

    assert (stats.waiting, stats.in_flight) == (1, 0)


@pytest.mark.parametrize(
    ("settlement", "attempts"),
    [(Retry(), [1, 2]), (Retry(after=0.0), [1, 2]), (Release(), [1, 1])],
)
async def test_a_settlement_decides_whether_an_attempt_is_spent(
    queue: InMemoryQueue, settlement: Settlement, attempts: list[int]
) -> None:
    work = opened_work(settlement)
    await queue.send(request())

    async with consuming(queue, work):
        await work.has_started(2)

    assert work.attempts == attempts


async def test_a_burial_keeps_the_message_with_its_reason(queue: InMemoryQueue) -> None:
    work = opened_work(Bury("it is no good", Code.UNDECODABLE))
    await queue.send(request())

    async with consuming(queue, work):
        await work.has_started()

    [letter] = await queue.dead_letters.list()
    assert letter.reason == "it is no good"
    assert letter.envelope is not None
    assert letter.envelope.request_id == "r1"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError(PROMPT), "handler raised ValueError"),
        (InternalError("no way on"), "internal: no way on"),
    ],
)
async def test_a_handler_that_breaks_is_tried_again_then_answered_then_buried(
    queue: InMemoryQueue, error: Exception, reason: str
) -> None:
    attempts: list[int] = []
    dead_when_answered: list[int] = []
    answered = asyncio.Event()

    async def broken(delivery: Delivery) -> Settlement:
        attempts.append(delivery.attempt)
        raise error

    async def answer(_: Delivery) -> None:
        dead_when_answered.append((await queue.stats()).dead)
        answered.set()

    await queue.send(request())
    async with consuming(queue, broken, answer_exhausted=answer):
        await answered.wait()

    [letter] = await queue.dead_letters.list()
    assert attempts == [1, 2, 3]
    assert dead_when_answered == [0]
    assert letter.reason == reason


async def test_a_broken_delivery_whose_caller_cannot_be_told_is_not_buried(
    queue: InMemoryQueue,
) -> None:
    attempts: list[int] = []
    answered = asyncio.Event()

    async def broken(delivery: Delivery) -> Settlement:
        attempts.append(delivery.attempt)
        raise ValueError(PROMPT)

    async def answer(delivery: Delivery) -> None:
        if delivery.attempt < 5:
            raise TransportUnavailableError("the output queue is away")
        answered.set()

    await queue.send(request())
    async with consuming(queue, broken, answer_exhausted=answer):
        await answered.wait()

    assert attempts == [1, 2, 3, 4, 5]
    assert (await queue.stats()).dead == 1


async def test_one_broken_delivery_does_not_end_the_loop(queue: InMemoryQueue) -> None:
    handled = asyncio.Event()

    async def handler(delivery: Delivery) -> Settlement:
        if delivery.envelope.session_id == "bad":
            raise ValueError(PROMPT)
        handled.set()
        return Ack()

    await queue.send(request("bad", "r1"))
    await queue.send(request("good", "r2"))
    async with consuming(queue, handler, concurrency=1):
        await handled.wait()


async def test_a_handler_that_lost_its_claim_spends_no_attempt(queue: InMemoryQueue) -> None:
    attempts: list[int] = []
    done = asyncio.Event()

    async def handler(delivery: Delivery) -> Settlement:
        attempts.append(delivery.attempt)
        if len(attempts) == 1:
            raise FencedError("newer claim")
        done.set()
        return Ack()

    await queue.send(request())
    async with consuming(queue, handler):
        await done.wait()

    assert attempts == [1, 1]


async def test_a_delivery_whose_lease_ran_out_is_left_to_its_next_holder() -> None:
    clock = FakeClock()
    async with opened(clock, ack_wait=30.0) as queue:
        work = Work()
        await queue.send(request())
        async with consuming(queue, work):
            await work.has_started()
            await clock.advance(31.0)
            await work.has_started()
            work.gate.set()

        stats = await queue.stats()

    assert work.attempts == [1, 2]
    assert (stats.waiting, stats.in_flight, stats.dead) == (0, 0, 0)


# --- a broker that comes and goes -----------------------------------------------------------------


def away(times: int) -> Fault:
    """The broker is away for so many calls."""
    return raising(TransportUnavailableError("away"), times=times)


async def test_reading_goes_on_after_an_outage(queue: InMemoryQueue) -> None:
    work = opened_work()
    await queue.send(request())

    async with consuming(FailingQueue(queue, receiving=away(5)), work, concurrency=1):
        await work.has_started()

    assert (await queue.stats()).waiting == 0


async def test_settling_is_tried_again_through_an_outage(queue: InMemoryQueue) -> None:
    work = opened_work()
    await queue.send(request())

    async with consuming(FailingQueue(queue, settling=away(2)), work):
        await work.has_started()

    stats = await queue.stats()
    assert (work.attempts, stats.in_flight, stats.waiting) == ([1], 0, 0)


async def test_a_delivery_that_cannot_be_settled_is_left_to_its_lease(
    queue: InMemoryQueue,
) -> None:
    work = opened_work()
    await queue.send(request("s1", "r1"))

    for_ever = FailingQueue(queue, settling=away(1_000))
    async with consuming(for_ever, work, settle_timeout=0.1):
        await work.has_started()

    assert (await queue.stats()).in_flight == 1


async def test_a_fault_of_a_reader_ends_the_loop() -> None:
    fault = raising(RuntimeError("no outage but a fault"), times=1_000)
    async with opened(SystemClock()) as queue:
        with pytest.raises(ExceptionGroup) as raised:
            broken = FailingQueue(queue, receiving=fault)
            async with consuming(broken, opened_work()) as running:
                await running.task

    assert raised.group_contains(RuntimeError)
