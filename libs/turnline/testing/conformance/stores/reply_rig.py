"""The words the cases of ResponseStore are written in."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from turnline.errors import RetryHint
from turnline.protocol import (
    BEGINNING,
    ChatEvent,
    ChatReply,
    Chunk,
    EventType,
    Failure,
    Position,
    ReplyKey,
)
from turnline.store import ResponseStore, StoredReply, StreamItem
from turnline.testing.conformance.stores.harness import (
    ReplyHarness,
    ReplyLimits,
    StoreTime,
    expect_declared_differences,
    soon,
)

KEY = ReplyKey("", "r1")
SESSION = "s1"


def reply(
    text: str = "hello", *, request_id: str = KEY.request_id, attempt: int = 1, chunks: int = 0
) -> StoredReply:
    """Make a good end."""
    return StoredReply(
        request_id=request_id,
        session_id=SESSION,
        status_code=200,
        payload=ChatReply(result=text),
        attempt=attempt,
        chunk_count=chunks,
    )


def failed(code: str = "agent_failed", *, attempt: int = 1, chunks: int = 0) -> StoredReply:
    """Make a bad end."""
    failure = Failure(code=code, message="It failed", status_code=500, retry=RetryHint.NEVER)
    return StoredReply(
        request_id=KEY.request_id,
        session_id=SESSION,
        status_code=500,
        payload=failure,
        attempt=attempt,
        chunk_count=chunks,
    )


def chunk(attempt: int, index: int) -> Chunk:
    """Make one text delta."""
    event = ChatEvent(type=EventType.TEXT_DELTA, message_id="m", content=f"{attempt}.{index} ")
    return Chunk(attempt=attempt, index=index, event=event)


def chunks(attempt: int, first: int, last: int) -> list[Chunk]:
    """Make chunks `first`..`last`, both included."""
    return [chunk(attempt, index) for index in range(first, last + 1)]


async def add(
    store: ResponseStore, attempt: int, first: int, last: int, *, key: ReplyKey = KEY
) -> None:
    """Append chunks `first`..`last`, both included, in one call."""
    await store.append(key, session_id=SESSION, chunks=chunks(attempt, first, last))


class Reading:
    """One reader of a stream."""

    def __init__(self, items: AsyncIterator[StreamItem], time: StoreTime) -> None:
        self._items = items
        self._time = time

    async def next(self) -> StreamItem:
        """Give the next item, however long it takes."""
        return await anext(self._items)

    async def take(self, count: int) -> Sequence[StreamItem]:
        """Give the next items, which must be there by now."""
        return [await soon(self._time, anext(self._items)) for _ in range(count)]

    async def rest(self) -> Sequence[StreamItem]:
        """Give everything up to where the stream stops, which must be there by now."""
        return await soon(self._time, self._drain())

    async def _drain(self) -> Sequence[StreamItem]:
        return [item async for item in self._items]


@asynccontextmanager
async def reading(
    store: ResponseStore, time: StoreTime, after: Position = BEGINNING, *, key: ReplyKey = KEY
) -> AsyncIterator[Reading]:
    """Read a stream, releasing at the end what the reader held."""
    items = store.stream(key, after)
    try:
        yield Reading(items, time)
    finally:
        if isinstance(items, AsyncGenerator):
            await items.aclose()


async def read_all(
    store: ResponseStore, time: StoreTime, after: Position = BEGINNING, *, key: ReplyKey = KEY
) -> Sequence[StreamItem]:
    """Read a finished stream from a position to where it stops."""
    async with reading(store, time, after, key=key) as reader:
        return await reader.rest()


async def give_up(task: "asyncio.Task[object]") -> None:
    """Cancel a task and wait until it is over."""
    task.cancel()
    await asyncio.wait([task])


class ReplyCases:
    """What every case of ResponseStore is given.

    `store` is fresh; `other` is what another process would see of it.
    """

    @pytest.fixture
    def harness(self) -> ReplyHarness:
        """The adapter's; override it."""
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def declared_differences(self, request: pytest.FixtureRequest, harness: ReplyHarness) -> None:
        """Expect failure where the adapter declares it."""
        expect_declared_differences(request, harness.differences)

    @pytest.fixture
    def time(self, harness: ReplyHarness) -> StoreTime:
        """The store's time."""
        return harness.time

    @pytest.fixture
    async def store(self, harness: ReplyHarness) -> AsyncIterator[ResponseStore]:
        """A store with wide limits."""
        async with harness.open(ReplyLimits()) as store:
            yield store

    @pytest.fixture
    async def other(
        self, harness: ReplyHarness, store: ResponseStore
    ) -> AsyncIterator[ResponseStore]:
        """The same data from another process."""
        async with harness.peer(store) as other:
            yield other
