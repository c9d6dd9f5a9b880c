"""One reader of one reply's stream.

A reader asks its watch, not the store: the watch knows the reply's record for as long as somebody
looks, so a reply evicted in the middle of a read is read to its end.
"""

import asyncio
from dataclasses import dataclass

from turnline.protocol import Position
from turnline.store.memory.chunk_log import ChunkLog
from turnline.store.ports import StoredReply, StreamItem
from turnline.store.stream_place import StreamPlace

_ITEMS_IN_A_ROW = 256


@dataclass(slots=True)
class ReplyRecord:
    """What is kept of one turn.

    Attributes:
        fingerprint: None until the turn is opened.
        touched: clock reading of the last write; its TTL counts from here.
        log: chunks of the newest attempt; None before the first.
        reply: the end; None while pending.
        weight: about how many bytes it takes, chunks apart.
    """

    session_id: str
    touched: float
    fingerprint: str | None = None
    log: ChunkLog | None = None
    reply: StoredReply | None = None
    weight: int = 0


class ReplyWatch:
    """What readers and waiters of one key share.

    Attributes:
        record: what there is to read; None while the key is unknown.
    """

    __slots__ = ("__weakref__", "_changed", "record")

    def __init__(self, record: ReplyRecord | None) -> None:
        self.record = record
        self._changed = asyncio.Event()

    @property
    def reply(self) -> StoredReply | None:
        """The end, if there is one."""
        return self.record.reply if self.record is not None else None

    def notify(self) -> None:
        """Wake everyone who waits for a change now."""
        self._changed.set()
        self._changed.clear()

    async def change(self) -> None:
        """Wait for the next `notify`; look at `record` first, in the same step."""
        await self._changed.wait()


class ReplyReader:
    """Reads a stream from one position on; an async iterator, one consumer.

    Cancelling the wait for an item loses nothing: the next call goes on from the same place.
    """

    def __init__(self, watch: ReplyWatch, after: Position) -> None:
        self._watch = watch
        self._at = StreamPlace(after)
        self._log: ChunkLog | None = None
        self._place = 0
        self._in_a_row = 0
        self._ended = False

    def __aiter__(self) -> "ReplyReader":
        return self

    async def __anext__(self) -> StreamItem:
        if self._ended:
            raise StopAsyncIteration
        await self._give_way()
        while True:
            record = self._watch.record
            item = self._next(record) if record is not None else None
            if item is not None:
                return item
            self._in_a_row = 0
            await self._watch.change()

    async def _give_way(self) -> None:
        """Let others run now and then while everything asked for is there already."""
        self._in_a_row += 1
        if self._in_a_row > _ITEMS_IN_A_ROW:
            self._in_a_row = 0
            await asyncio.sleep(0)

    def _next(self, record: ReplyRecord) -> StreamItem | None:
        log, reply = record.log, record.reply
        if log is not None and log.attempt >= self._at.attempt:
            item = self._next_of(log)
            if item is not None:
                return item
        return self._end(reply) if reply is not None else None

    def _next_of(self, log: ChunkLog) -> StreamItem | None:
        if log is not self._log:
            self._enter(log)
        found = log.read(self._place)
        # A reader may stand ahead of what was stored when it came.
        while found is not None and found[1].index <= self._at.index:
            found = log.read(found[0] + 1)
        if found is None:
            return None
        place, chunk = found
        gap = self._at.gap_before(chunk.index)
        if gap is not None:
            return gap
        self._place, self._at.index = place + 1, chunk.index
        return chunk

    def _enter(self, log: ChunkLog) -> None:
        self._at.enter(log.attempt)
        self._log, self._place = log, log.place_after(self._at.index)

    def _end(self, reply: StoredReply) -> StreamItem:
        if gap := self._at.gap_before_end(reply):
            return gap
        self._ended = True
        return reply
