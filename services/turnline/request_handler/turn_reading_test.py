"""One turn's stream is read at its reader's pace."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from turnline.errors import StoreUnavailableError
from turnline.protocol import BEGINNING, ChatEvent, ChatReply, Chunk, EventType, Failure
from turnline.request_handler import TurnStream, WaitingRoom
from turnline.request_handler.turn_reading import TurnReading
from turnline.store import StoredReply, StreamItem
from turnline.telemetry import Metrics, names


class Source:
    """A store's stream of so many chunks and, if wanted, an end.

    Attributes:
        taken: how many items were asked for and given.
        closed: whether it was closed.
    """

    def __init__(
        self, chunks: int, *, ends: bool = True, fails: bool = False, waits: bool = False
    ) -> None:
        self.taken = 0
        self.closed = False
        self._chunks, self._ends, self._fails, self._waits = chunks, ends, fails, waits

    async def stream(self) -> AsyncIterator[StreamItem]:
        try:
            for index in range(self._chunks):
                self.taken += 1
                event = ChatEvent(type=EventType.TEXT_DELTA, content="t")
                yield Chunk(attempt=1, index=index, event=event)
            if self._waits:
                await asyncio.Event().wait()
            if self._fails:
                raise StoreUnavailableError("away")
            if self._ends:
                self.taken += 1
                yield StoredReply(
                    request_id="r1",
                    session_id="s1",
                    status_code=200,
                    payload=ChatReply(),
                    attempt=1,
                    chunk_count=self._chunks,
                )
        finally:
            self.closed = True


def reading_of(source: Source, waiting: WaitingRoom) -> TurnReading:
    stream = TurnStream(
        request_id="r1", session_id="s1", after=BEGINNING, items=source.stream(), known=False
    )
    gaps = Metrics(process=False).counter(names.STREAM_GAPS_TOTAL)
    return TurnReading(stream, waiting=waiting, idle=5.0, gaps=gaps)


async def test_nothing_is_read_ahead_of_its_reader() -> None:
    source = Source(1_000)
    async with aclosing(reading_of(source, WaitingRoom()).items()) as items:
        for count in range(1, 6):
            await anext(items)
            await asyncio.sleep(0)
            assert source.taken == count


async def test_a_reader_who_leaves_closes_the_stores_stream_and_waits_no_more() -> None:
    source, waiting = Source(10), WaitingRoom()
    async with aclosing(reading_of(source, waiting).items()) as items:
        await anext(items)

    assert source.closed
    assert waiting.waiting == 0


async def test_a_stream_that_just_stops_is_a_failure_of_delivery() -> None:
    async with aclosing(reading_of(Source(1, ends=False), WaitingRoom()).items()) as items:
        got = [item async for item in items]

    assert isinstance(got[-1], Failure)
    assert (got[-1].code, got[-1].message) == ("store_unavailable", "Stream delivery failed")


async def test_an_error_of_the_store_reaches_the_surface() -> None:
    async with aclosing(reading_of(Source(1, fails=True), WaitingRoom()).items()) as items:
        await anext(items)
        with pytest.raises(StoreUnavailableError):
            await anext(items)


async def test_when_the_room_closes_what_is_there_is_given_and_then_the_reader_sent_away() -> None:
    source, waiting = Source(20), WaitingRoom()
    async with aclosing(reading_of(source, waiting).items()) as items:
        await anext(items)
        await waiting.close()
        rest = [item async for item in items]

    assert len(rest) == 20
    assert isinstance(rest[-1], StoredReply)


async def test_a_reader_who_comes_back_to_a_closed_room_is_sent_away_soon() -> None:
    source, waiting = Source(1, ends=False, waits=True), WaitingRoom()
    async with aclosing(reading_of(source, waiting).items()) as items:
        await anext(items)
        await waiting.close()
        async with asyncio.timeout(30):
            last = await anext(items)

    assert isinstance(last, Failure)
    assert last.code == "draining"
