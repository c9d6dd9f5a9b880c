"""Publishing answers: patience with the broker, numbers of chunks, and sizes."""

import asyncio
from dataclasses import replace

import pytest

from turnline.errors import PayloadTooLargeError, QueueFullError, TransportUnavailableError
from turnline.hosting import Backoff
from turnline.protocol import (
    ChatEvent,
    ChatReply,
    ChatRequest,
    Envelope,
    EventType,
    SessionKey,
)
from turnline.protocol.clock import SystemClock
from turnline.runner.publish import MAX_CHUNKS_PER_ENVELOPE, Patience, Publisher
from turnline.store import Claim, Outcome
from turnline.transport.in_memory import InMemoryOptions, InMemoryQueue, InMemoryTransport

REQUEST = Envelope(request_id="r", session_id="s", payload=ChatRequest(prompt="p"))
CLAIM = Claim(key=SessionKey("", "s"), request_id="r", fence=7, attempt=2)
QUICK = Backoff(base=0.001, cap=0.002)


def a_transport(options: InMemoryOptions | None = None) -> InMemoryTransport:
    return InMemoryTransport(options or InMemoryOptions(), SystemClock())


def outcome(text: str) -> Outcome:
    return Outcome(payload=ChatReply(result=text), status_code=200, attempt=2, fence=7)


def events(*texts: str) -> list[ChatEvent]:
    return [ChatEvent(type=EventType.TEXT_DELTA, content=text) for text in texts]


async def sent(transport: InMemoryTransport) -> list[Envelope]:
    """Take everything off the output queue."""
    envelopes = []
    async with transport.output.consumer() as consumer:
        while (await transport.output.stats()).waiting:
            delivery = await consumer.receive()
            envelopes.append(delivery.envelope)
            await delivery.ack()
    return envelopes


async def test_an_end_carries_what_the_ledger_holds() -> None:
    async with a_transport() as transport:
        ended = replace(outcome("hello"), chunk_count=3)
        await Publisher(transport.output).outcome(REQUEST, ended)
        (envelope,) = await sent(transport)

    assert envelope.payload == ChatReply(result="hello")
    assert (envelope.attempt, envelope.fence, envelope.chunk_count) == (2, 7, 3)
    assert (envelope.request_id, envelope.status_code) == ("r", 200)


async def test_publishing_an_end_again_is_harmless() -> None:
    async with a_transport() as transport:
        publisher = Publisher(transport.output)
        await publisher.outcome(REQUEST, outcome("hello"))
        await publisher.outcome(REQUEST, outcome("hello"))

        assert len(await sent(transport)) == 1


async def test_a_full_queue_is_waited_for() -> None:
    async with a_transport(InMemoryOptions(max_messages=1)) as transport:
        publisher = Publisher(transport.output, Patience(backoff=QUICK))
        await publisher.outcome(REQUEST, outcome("first"))
        async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
            second = replace(REQUEST, request_id="q")
            publishing = tasks.create_task(publisher.outcome(second, outcome("second")))
            await asyncio.sleep(0)
            (first,) = await sent(transport)
            await publishing
        (envelope,) = await sent(transport)

    assert (first.request_id, envelope.request_id) == ("r", "q")


async def test_patience_with_a_full_queue_ends() -> None:
    async with a_transport(InMemoryOptions(max_messages=1)) as transport:
        publisher = Publisher(transport.output, Patience(seconds=0.01, backoff=QUICK))
        await publisher.outcome(REQUEST, outcome("first"))

        with pytest.raises(QueueFullError):
            await publisher.outcome(replace(REQUEST, request_id="q"), outcome("second"))


class SilentQueue(InMemoryQueue):
    """Confirms nothing for so many sends."""

    silent = 0
    asked = 0

    async def send(self, envelope: Envelope) -> bool:
        self.asked += 1
        if self.asked <= self.silent:
            await asyncio.Event().wait()
        return await super().send(envelope)


def a_silent_queue(silent: int) -> SilentQueue:
    queue = SilentQueue(
        name="output", options=InMemoryOptions(), max_per_session=0, clock=SystemClock()
    )
    queue.silent = silent
    queue.open()
    return queue


async def test_a_send_that_is_not_confirmed_in_time_is_made_again() -> None:
    queue = a_silent_queue(2)
    patience = Patience(seconds=5.0, send_timeout=0.01, backoff=QUICK)

    await Publisher(queue, patience).outcome(REQUEST, outcome("hello"))

    assert queue.asked == 3
    assert (await queue.stats()).waiting == 1


async def test_a_broker_that_never_confirms_is_given_up() -> None:
    patience = Patience(seconds=0.03, send_timeout=0.01, backoff=QUICK)

    with pytest.raises(TransportUnavailableError):
        await Publisher(a_silent_queue(1_000), patience).outcome(REQUEST, outcome("hello"))


async def test_an_end_that_is_too_large_is_known_before_it_is_sent() -> None:
    async with a_transport(InMemoryOptions(max_bytes=10_000)) as transport:
        publisher = Publisher(transport.output)

        publisher.check_size(REQUEST, outcome("x" * 9_000))
        with pytest.raises(PayloadTooLargeError):
            publisher.check_size(REQUEST, outcome("x" * 11_000))
        with pytest.raises(PayloadTooLargeError):
            await publisher.outcome(REQUEST, outcome("x" * 11_000))


async def test_chunks_are_numbered_through_all_that_is_sent() -> None:
    async with a_transport() as transport:
        chunks = Publisher(transport.output).chunks(REQUEST, CLAIM)
        await chunks.send(events("a", "b"))
        await chunks.send(events("c"))
        first, second = await sent(transport)

    assert [chunk.index for chunk in (*first.chunks, *second.chunks)] == [0, 1, 2]
    assert {chunk.attempt for chunk in first.chunks} == {CLAIM.attempt}
    assert (first.attempt, first.fence, first.payload) == (CLAIM.attempt, CLAIM.fence, None)
    assert chunks.count == 3


async def test_an_envelope_holds_so_many_chunks() -> None:
    async with a_transport() as transport:
        chunks = Publisher(transport.output).chunks(REQUEST, CLAIM)
        await chunks.send(events(*("x" for _ in range(2 * MAX_CHUNKS_PER_ENVELOPE + 1))))
        sizes = [len(envelope.chunks) for envelope in await sent(transport)]

    assert sizes == [MAX_CHUNKS_PER_ENVELOPE, MAX_CHUNKS_PER_ENVELOPE, 1]


async def test_chunks_that_are_too_large_together_are_sent_apart_and_in_order() -> None:
    async with a_transport(InMemoryOptions(max_bytes=10_000)) as transport:
        chunks = Publisher(transport.output).chunks(REQUEST, CLAIM)
        await chunks.send(events(*(str(number) * 4_000 for number in range(7))))
        envelopes = await sent(transport)

    indices = [chunk.index for envelope in envelopes for chunk in envelope.chunks]
    assert indices == list(range(7))
    assert len(envelopes) > 1
    assert chunks.count == 7


async def test_one_chunk_that_is_too_large_is_refused_and_those_before_it_are_sent() -> None:
    async with a_transport(InMemoryOptions(max_bytes=10_000)) as transport:
        chunks = Publisher(transport.output).chunks(REQUEST, CLAIM)
        with pytest.raises(PayloadTooLargeError, match="piece of the answer") as refused:
            await chunks.send(events("a", "b", "x" * 11_000, "c"))
        envelopes = await sent(transport)

    assert refused.value.field == "result"
    assert [chunk.delta for envelope in envelopes for chunk in envelope.chunks] == ["a", "b"]
    assert chunks.count == 2
