"""Replies and their streams, kept in this process.

Everything happens between two awaits, so each method is atomic.  Expiry and eviction look only at
the oldest: pending and finished turns stand in the order of their last write, which with one TTL
is also the order in which they expire.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

from turnline.protocol import ChatReply, Chunk, Failure, Position, ReplyKey
from turnline.protocol.clock import Clock
from turnline.store.memory.chunk_log import ChunkLog
from turnline.store.memory.reply_stream import ReplyReader, ReplyRecord, ReplyWatch
from turnline.store.memory.weights import REPLY_BYTES, reply_weight
from turnline.store.ports import Opened, PendingReply, StoredReply, StreamItem

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryResponseOptions:
    """Bounds of a MemoryResponseStore; each at least 1.

    Attributes:
        ttl: seconds a turn is kept after its last write (admission, chunk, reply).
        max_replies: finished turns kept.
        max_pending: turns kept that have no end; over it the one longest without a write gives
            way unless somebody reads or waits for it.
        max_reply_bytes: about the memory of all turns with their chunks.  Over it finished turns
            give way, the newest excepted, then the oldest chunks of the turn being written.
        max_chunks_per_reply: chunks kept of one turn; the oldest give way.
        max_chunk_bytes_per_reply: about the memory of one turn's chunks; the oldest give way, the
            newest stays whatever its size.
    """

    ttl: float = 604_800.0
    max_replies: int = 10_000
    max_pending: int = 100_000
    max_reply_bytes: int = 128 * MIB
    max_chunks_per_reply: int = 100_000
    max_chunk_bytes_per_reply: int = 32 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryResponseUsage:
    """What a MemoryResponseStore keeps now.

    Attributes:
        finished / pending: turns with and without an end.
        bytes: about the memory they take, chunks included.
        watched: keys somebody reads or waits for.
    """

    finished: int
    pending: int
    bytes: int
    watched: int


class MemoryResponseStore:
    """A ResponseStore that lives and ends with its process."""

    def __init__(self, options: MemoryResponseOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._pending: OrderedDict[ReplyKey, ReplyRecord] = OrderedDict()
        self._finished: OrderedDict[ReplyKey, ReplyRecord] = OrderedDict()
        # An entry lives as long as a reader or waiter holds it.
        self._watches: WeakValueDictionary[ReplyKey, ReplyWatch] = WeakValueDictionary()
        self._weight = 0

    @property
    def usage(self) -> MemoryResponseUsage:
        """What is kept now."""
        return MemoryResponseUsage(
            finished=len(self._finished),
            pending=len(self._pending),
            bytes=self._weight,
            watched=len(self._watches),
        )

    async def open(self, key: ReplyKey, *, session_id: str, fingerprint: str) -> Opened:
        """Record that a turn is admitted, if it is new."""
        record = self._find(key)
        if record is None:
            record = self._create(key, session_id)
            record.fingerprint = fingerprint
            self._fit(record)
            return Opened.NEW
        if record.fingerprint is None:
            record.fingerprint = fingerprint
        return Opened.KNOWN if record.fingerprint == fingerprint else Opened.DIFFERENT

    async def discard(self, key: ReplyKey) -> None:
        """Forget a pending turn, its chunks included; who waits for it waits on."""
        record = self._pending.pop(key, None)
        if record is None:
            return
        self._weight -= _weight(record)
        watch = self._watches.get(key)
        if watch is not None:
            watch.record = None

    async def put(self, key: ReplyKey, reply: StoredReply) -> None:
        """Store the end of a turn, unless it has one that stays."""
        record = self._find(key) or self._create(key, reply.session_id)
        if record.reply is not None and not _replaces(reply, record.reply):
            return
        before = _weight(record)
        if record.log is not None and record.log.attempt < reply.attempt:
            record.log = None
        record.reply = reply
        record.weight = REPLY_BYTES + reply_weight(reply)
        record.touched = self._clock.monotonic()
        self._weight += _weight(record) - before
        self._pending.pop(key, None)
        self._finished[key] = record
        self._finished.move_to_end(key)
        self._notify(key)
        self._fit(record)

    async def get(self, key: ReplyKey) -> StoredReply | PendingReply | None:
        """Read what is known now."""
        record = self._find(key)
        if record is None:
            return None
        if record.reply is not None:
            return record.reply
        return PendingReply(request_id=key.request_id, session_id=record.session_id)

    async def wait(self, key: ReplyKey, timeout: float) -> StoredReply | None:
        """Wait for the end; one that comes in the very moment `timeout` is over still counts."""
        watch = self._watch(key)
        if watch.reply is not None or timeout <= 0:
            return watch.reply
        end = self._clock.monotonic() + timeout
        over = asyncio.Event()
        timers = [self._clock.call_at(end, call) for call in (over.set, watch.notify)]
        try:
            while watch.reply is None and not over.is_set():
                await watch.change()
        finally:
            for timer in timers:
                timer.cancel()
        return watch.reply

    async def append(self, key: ReplyKey, *, session_id: str, chunks: Sequence[Chunk]) -> None:
        """Add chunks, dropping what is stale, known already or too late."""
        record = self._find(key)
        if not chunks or (record is not None and record.reply is not None):
            return
        record = record or self._create(key, session_id)
        before = _weight(record)
        for chunk in chunks:
            self._add(record, chunk)
        self._weight += _weight(record) - before
        record.touched = self._clock.monotonic()
        self._pending.move_to_end(key)
        self._notify(key)
        self._fit(record)

    def stream(self, key: ReplyKey, after: Position) -> AsyncIterator[StreamItem]:
        """Read behind `after`; a reply evicted while it is read is read to its end."""
        return ReplyReader(self._watch(key), after)

    def _find(self, key: ReplyKey) -> ReplyRecord | None:
        self._expire()
        return self._finished.get(key) or self._pending.get(key)

    def _create(self, key: ReplyKey, session_id: str) -> ReplyRecord:
        record = ReplyRecord(
            session_id=session_id, touched=self._clock.monotonic(), weight=REPLY_BYTES
        )
        self._pending[key] = record
        self._weight += record.weight
        watch = self._watches.get(key)
        if watch is not None:
            watch.record = record
        return record

    def _watch(self, key: ReplyKey) -> ReplyWatch:
        record = self._find(key)
        watch = self._watches.get(key)
        if watch is None:
            watch = self._watches[key] = ReplyWatch(record)
        return watch

    def _notify(self, key: ReplyKey) -> None:
        watch = self._watches.get(key)
        if watch is not None:
            watch.notify()

    def _add(self, record: ReplyRecord, chunk: Chunk) -> None:
        log = record.log
        if log is None or log.attempt < chunk.attempt:
            log = record.log = ChunkLog(chunk.attempt)
        if chunk.attempt < log.attempt or not log.add(chunk):
            return
        options = self._options
        while len(log) > options.max_chunks_per_reply:
            log.drop_oldest()
        while log.weight > options.max_chunk_bytes_per_reply and len(log) > 1:
            log.drop_oldest()

    def _expire(self) -> None:
        limit = self._clock.monotonic() - self._options.ttl
        while self._finished and _oldest(self._finished)[1].touched <= limit:
            self._evict_finished()
        while self._pending and _oldest(self._pending)[1].touched <= limit:
            self._evict_pending()

    def _fit(self, written: ReplyRecord) -> None:
        options = self._options
        while len(self._finished) > options.max_replies:
            self._evict_finished()
        # Looks once at each turn at most: all of them may be watched.
        for _ in range(len(self._pending) - options.max_pending):
            self._evict_pending()
        while self._weight > options.max_reply_bytes and len(self._finished) > 1:
            self._evict_finished()
        log = written.log
        while self._weight > options.max_reply_bytes and log is not None and len(log) > 1:
            before = log.weight
            log.drop_oldest()
            self._weight -= before - log.weight

    def _evict_finished(self) -> None:
        key, record = self._finished.popitem(last=False)
        self._weight -= _weight(record)
        # Whoever reads it keeps the watch and with it the record; newcomers find nothing.
        self._watches.pop(key, None)

    def _evict_pending(self) -> None:
        key, record = _oldest(self._pending)
        if key in self._watches:
            record.touched = self._clock.monotonic()
            self._pending.move_to_end(key)
            return
        del self._pending[key]
        self._weight -= _weight(record)


def _replaces(new: StoredReply, old: StoredReply) -> bool:
    return isinstance(old.payload, Failure) and isinstance(new.payload, ChatReply)


def _weight(record: ReplyRecord) -> int:
    return record.weight + (record.log.weight if record.log is not None else 0)


def _oldest(records: OrderedDict[ReplyKey, ReplyRecord]) -> tuple[ReplyKey, ReplyRecord]:
    return next(iter(records.items()))
