"""Brokers and handlers that break their contracts cost one delivery, not the loop or its leases."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from chaos.rig import QUEUES
from turnline.errors import FencedError, PayloadTooLargeError, TransportUnavailableError
from turnline.hosting import Backoff, ConsumeLoop, ConsumeOptions, LeaseKeeper, alongside
from turnline.protocol import ChatRequest, Envelope
from turnline.protocol.clock import SystemClock
from turnline.telemetry import Metrics
from turnline.testing.failing_queue import FailingQueue, raising, well
from turnline.transport import (
    Ack,
    Bury,
    Delivery,
    Release,
    Retry,
    Settlement,
)
from turnline.transport.in_memory import InMemoryTransport

Handler = Callable[[Delivery], Awaitable[Settlement]]


async def _never() -> None:
    await asyncio.Event().wait()


@dataclass(slots=True)
class Bench:
    """One loop over one bad queue."""

    queue: FailingQueue
    loop: ConsumeLoop
    stop: asyncio.Event
    running: asyncio.Task[None]
    handled: list[str]
    news: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def send(self, request_id: str) -> None:
        await self.queue.send(
            Envelope(request_id=request_id, session_id=request_id, payload=ChatRequest(prompt="hi"))
        )

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not done():
                assert not self.running.done(), self.running
                await asyncio.sleep(0.005)

    async def settled(self) -> None:
        """Wait until nothing is on the queue."""
        async with asyncio.timeout(30):
            while True:
                assert not self.running.done(), self.running
                stats = await self.queue.stats()
                if not stats.waiting and not stats.in_flight:
                    return
                await asyncio.sleep(0.005)


@asynccontextmanager
async def open_bench(
    handler: Handler | None = None,
    *,
    max_concurrency: int = 10,
    answer_exhausted: Callable[[Delivery], Awaitable[None]] | None = None,
    settle_timeout: float = 0.3,
    lease: float = 0.2,
) -> AsyncIterator[Bench]:
    """Run a loop; leaving drains it at once and raises what it raised."""
    handled: list[str] = []

    async def note(delivery: Delivery) -> Settlement:
        handled.append(delivery.envelope.request_id)
        return await handler(delivery) if handler is not None else Ack()

    metrics = Metrics(process=False)
    keeper = LeaseKeeper(metrics)
    transport = InMemoryTransport(replace(QUEUES, ack_wait=lease), SystemClock())
    queue = FailingQueue(transport.input)
    loop = ConsumeLoop(
        queue=queue,
        handler=note,
        keeper=keeper,
        metrics=metrics,
        answer_exhausted=answer_exhausted,
        options=ConsumeOptions(
            name="input",
            consumers=2,
            max_concurrency=max_concurrency,
            lease_seconds=lease,
            max_attempts=2,
            backoff=Backoff(base=0.01, cap=0.02),
            settle_timeout=settle_timeout,
        ),
    )
    stop = asyncio.Event()
    async with transport, alongside(keeper.run), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(loop.run(stop, grace=0.05))
        yield Bench(queue, loop, stop, running, handled)
        stop.set()


async def test_a_broker_that_is_away_again_and_again_is_asked_again() -> None:
    async with open_bench() as bench:
        bench.queue.receiving = raising(TransportUnavailableError("away"), times=8)
        await bench.send("first")
        await bench.settled()

        assert bench.handled == ["first"]


@pytest.mark.parametrize(
    "error",
    [RuntimeError("broken adapter"), FencedError("gone"), PayloadTooLargeError("", limit_bytes=1)],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize(
    "settlement",
    [Ack(), Retry(0.0), Release(), Bury("bad", FencedError.code)],
    ids=lambda settlement: type(settlement).__name__,
)
async def test_a_settlement_that_fails_leaves_the_delivery_to_its_lease_and_the_loop_running(
    settlement: Settlement, error: Exception
) -> None:
    async def settle(delivery: Delivery) -> Settlement:
        return settlement if delivery.attempt == 1 and len(bench.handled) == 1 else Ack()

    async with open_bench(settle) as bench:
        bench.queue.settling = raising(error)
        await bench.send("first")
        await bench.until(lambda: bool(bench.handled))
        await bench.send("other")
        await bench.settled()

        assert bench.handled.count("other") == 1
        assert bench.handled.count("first") == 2


@pytest.mark.parametrize("error", [RuntimeError("x"), FencedError("gone")], ids=["bug", "fenced"])
async def test_a_hand_back_that_fails_does_not_fail_the_drain(error: Exception) -> None:
    async def hang(_: Delivery) -> Settlement:
        await asyncio.Event().wait()
        return Ack()

    async with open_bench(hang) as bench:
        bench.queue.settling = raising(error)
        await bench.send("first")
        await bench.until(lambda: bool(bench.handled))

        bench.stop.set()
        async with asyncio.timeout(30):
            await bench.running

        assert bench.running.exception() is None


async def test_a_settlement_that_is_never_confirmed_costs_one_slot_for_its_time() -> None:
    async with open_bench(max_concurrency=2) as bench:
        bench.queue.settling = _never
        await bench.send("first")
        await bench.until(lambda: bool(bench.handled))
        bench.queue.settling = well
        for number in range(5):
            await bench.send(f"other-{number}")
        await bench.settled()

        assert bench.handled.count("first") == 2
        assert {f"other-{number}" for number in range(5)} <= set(bench.handled)


@pytest.mark.parametrize(
    "error",
    [ValueError("bug"), ExceptionGroup("two", [ValueError(), OSError()])],
    ids=lambda error: type(error).__name__,
)
async def test_a_handler_that_breaks_on_every_attempt_is_buried_even_if_its_answer_breaks(
    error: Exception,
) -> None:
    async def broken(_: Delivery) -> Settlement:
        raise error

    async def no_answer(_: Delivery) -> None:
        if len(bench.handled) < 4:
            raise RuntimeError("nobody can be told")

    async with open_bench(broken, answer_exhausted=no_answer) as bench:
        await bench.send("first")
        await bench.settled()

        assert (await bench.queue.stats()).dead == 1


@pytest.mark.parametrize("error", [RuntimeError("bug"), ExceptionGroup("two", [ValueError()])])
async def test_a_renewal_that_raises_the_unexpected_costs_no_other_lease(error: Exception) -> None:
    going = asyncio.Event()

    async def work(delivery: Delivery) -> Settlement:
        await going.wait()
        return Ack()

    async with open_bench(work) as bench:
        bench.queue.renewing = raising(error)
        for number in range(3):
            await bench.send(f"turn-{number}")
        await bench.until(lambda: len(bench.handled) == 3)
        await asyncio.sleep(0.5)
        going.set()
        await bench.settled()

        assert sorted(bench.handled) == [f"turn-{number}" for number in range(3)]


async def test_a_lease_whose_renewal_always_raises_is_lost_and_its_work_stops() -> None:
    stopped = asyncio.Event()

    async def work(delivery: Delivery) -> Settlement:
        if delivery.attempt > 1:
            return Ack()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return Ack()

    async with open_bench(work) as bench:
        bench.queue.renewing = raising(RuntimeError("bug"), times=1000)
        await bench.send("first")
        async with asyncio.timeout(30):
            await stopped.wait()
        await bench.settled()

        assert bench.handled == ["first", "first"]
