"""What in_memory promises beyond the port."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager

import pytest

from turnline.config import Settings
from turnline.errors import NotFoundError, QueueFullError, TransportUnavailableError
from turnline.protocol import ChatRequest, Envelope
from turnline.protocol.clock import SystemClock
from turnline.telemetry import captured_logs
from turnline.testing import FakeClock
from turnline.transport.in_memory import (
    InMemoryOptions,
    InMemoryQueue,
    InMemoryTransport,
    open_transport,
)

DEFAULTS = InMemoryOptions()


def _request(session_id: str, request_id: str) -> Envelope:
    payload = ChatRequest(prompt="hello")
    return Envelope(request_id=request_id, session_id=session_id, payload=payload)


@asynccontextmanager
async def _input(options: InMemoryOptions = DEFAULTS) -> AsyncIterator[InMemoryQueue]:
    async with InMemoryTransport(options, FakeClock()) as transport:
        yield transport.input


async def test_readers_are_served_in_the_order_they_began_to_wait() -> None:
    served: list[int] = []

    async def read(number: int) -> None:
        await consumer.receive()
        served.append(number)

    async with _input() as queue, queue.consumer() as consumer, asyncio.TaskGroup() as tasks:
        for number in range(5):
            tasks.create_task(read(number))
        await FakeClock().run_ready()
        for number in range(5):
            await queue.send(_request(f"session-{number}", "turn"))
    assert served == [0, 1, 2, 3, 4]


async def test_a_reader_does_not_overtake_those_who_wait() -> None:
    async with _input() as queue, queue.consumer() as consumer, asyncio.TaskGroup() as tasks:
        first = tasks.create_task(consumer.receive())
        await FakeClock().run_ready()
        await queue.send(_request("session-1", "turn-1"))
        second = tasks.create_task(consumer.receive())
        await queue.send(_request("session-2", "turn-2"))
        assert (await first).envelope.request_id == "turn-1"
        assert (await second).envelope.request_id == "turn-2"


async def test_waits_that_were_given_up_leave_nothing_behind() -> None:
    async with _input() as queue, queue.consumer() as consumer:
        for _ in range(100):
            async with asyncio.TaskGroup() as tasks:
                wait = tasks.create_task(consumer.receive())
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                wait.cancel()
        assert not consumer._waiting
        assert not queue._dispatcher._readers


async def test_a_reader_that_is_never_out_of_work_lets_others_run() -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    async with _input() as queue, queue.consumer() as consumer, asyncio.TaskGroup() as tasks:
        ticking = tasks.create_task(tick())
        for number in range(50):
            await queue.send(_request("session", f"turn-{number}"))
        before = ticks
        for _ in range(50):
            await (await consumer.receive()).ack()
        ticking.cancel()
    assert ticks - before >= 49


async def test_leaving_a_reader_ends_its_waits_and_no_others() -> None:
    async with _input() as queue, queue.consumer() as stays, asyncio.TaskGroup() as tasks:
        async with queue.consumer() as leaves:
            ended = tasks.create_task(_unavailable(leaves.receive()))
            waits = tasks.create_task(stays.receive())
            await FakeClock().run_ready()
        assert "closed" in await ended
        await queue.send(_request("session", "turn"))
        assert (await waits).attempt == 1


async def _unavailable(wait: Awaitable[object]) -> str:
    with pytest.raises(TransportUnavailableError) as refusal:
        await wait
    return refusal.value.message


async def test_what_it_holds_is_there_when_it_is_entered_again() -> None:
    transport = InMemoryTransport(InMemoryOptions(), FakeClock())
    async with transport:
        await transport.input.send(_request("session", "turn"))
    async with transport, transport.input.consumer() as consumer:
        assert (await consumer.receive()).envelope.request_id == "turn"


async def test_a_lease_that_ran_out_while_it_was_left_is_over() -> None:
    clock = FakeClock()
    transport = InMemoryTransport(InMemoryOptions(ack_wait=5.0), clock)
    async with transport, transport.input.consumer() as consumer:
        await transport.input.send(_request("session", "turn"))
        await consumer.receive()
    await clock.advance(6.0)
    async with transport, transport.input.consumer() as consumer:
        assert (await consumer.receive()).attempt == 2


async def test_it_lives_in_real_time_too() -> None:
    options = InMemoryOptions(ack_wait=0.05)
    async with (
        asyncio.timeout(30),
        InMemoryTransport(options, SystemClock()) as transport,
        transport.input.consumer() as consumer,
    ):
        await transport.input.send(_request("session", "turn"))
        await consumer.receive()
        again = await consumer.receive()
        await again.retry(0.01)
        assert (again.attempt, (await consumer.receive()).attempt) == (2, 3)


async def test_a_dead_letter_that_gives_way_is_warned_of() -> None:
    with captured_logs(level=logging.WARNING) as records:
        async with (
            _input(InMemoryOptions(max_dead_letters=1)) as queue,
            queue.consumer() as consumer,
        ):
            for name in ("first", "second"):
                await queue.send(_request("session", name))
                await (await consumer.receive()).dead_letter("no use")
    (record,) = records
    assert record["event"] == "dead_letter.dropped"
    assert record["request_id"] == "first"
    assert "hello" not in str(record)


async def test_heavy_dead_letters_give_way_before_there_are_too_many() -> None:
    options = InMemoryOptions(max_dead_letter_bytes=2_000)
    async with _input(options) as queue, queue.consumer() as consumer:
        for number in range(5):
            request = ChatRequest(prompt="x" * 800)
            await queue.send(Envelope(request_id=f"r{number}", session_id="s", payload=request))
            await (await consumer.receive()).dead_letter("bad")

        letters = await queue.dead_letters.list()
        assert [letter.envelope and letter.envelope.request_id for letter in letters] == [
            "r3",
            "r4",
        ]
        assert await queue.dead_letters.purge() == 2


async def test_a_shortened_dedup_window_is_warned_of_once() -> None:
    with captured_logs(level=logging.WARNING) as records:
        async with _input(InMemoryOptions(max_dedup_ids=1)) as queue:
            for number in range(4):
                await queue.send(_request("session", f"turn-{number}"))
    assert [record["event"] for record in records] == ["dedup.window_shortened"]


async def test_injected_bytes_count_against_the_bounds() -> None:
    async with _input(InMemoryOptions(max_messages=1)) as queue:
        await queue.inject(b"raw")
        with pytest.raises(QueueFullError):
            await queue.inject(b"raw")


async def test_a_page_may_start_behind_a_letter_that_is_gone() -> None:
    async with _input() as queue, queue.consumer() as consumer:
        for name in ("first", "second"):
            await queue.send(_request("session", name))
            await (await consumer.receive()).dead_letter("no use")
        first, second = await queue.dead_letters.list()
        await queue.dead_letters.purge(first.id)
        assert await queue.dead_letters.list(after=first.id) == (second,)
        with pytest.raises(NotFoundError):
            await queue.dead_letters.list(after="not one of ours")


async def test_settings_reach_the_queues() -> None:
    settings = Settings.model_validate(
        {
            "api": {"max_body_bytes": 3_000_000},
            "execution": {
                "queues": {
                    "type": "in_memory",
                    "in_memory": {
                        "ack_wait": 7,
                        "dedup_window": 9,
                        "max_messages": 2,
                        "max_messages_per_session": 1,
                    },
                }
            },
        }
    )
    clock = FakeClock()
    async with open_transport(settings, clock) as transport:
        queue = transport.input
        async with queue.consumer() as consumer:
            await queue.send(_request("session-1", "turn"))
            with pytest.raises(QueueFullError):
                await queue.send(_request("session-1", "later"))
            await queue.send(_request("session-2", "turn"))
            with pytest.raises(QueueFullError):
                await queue.send(_request("session-3", "turn"))
            await consumer.receive()
            await clock.advance(7.5)
            assert [(await consumer.receive()).attempt for _ in range(2)] == [1, 2]
            assert await queue.send(_request("session-1", "turn")) is False
        assert queue.capabilities.max_bytes is not None
        assert queue.capabilities.max_bytes > 3_000_000


async def test_a_plain_json_body_without_metadata_is_a_request() -> None:
    body = b'{"request_id":"r1","session_id":"s1","prompt":"tick","scheduled_task_id":"task-1"}'
    async with _input() as queue, queue.consumer() as consumer:
        await queue.inject(body, "s1")

        envelope = (await consumer.receive()).envelope

    assert (envelope.request_id, envelope.session_id) == ("r1", "s1")
    assert isinstance(envelope.payload, ChatRequest)
    assert (envelope.payload.prompt, envelope.payload.scheduled_task_id) == ("tick", "task-1")
