"""Replies and their streams in a DynamoDB table."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

from turnline.errors import PayloadTooLargeError, StoreUnavailableError
from turnline.protocol import Chunk, Failure, Position, ReplyKey
from turnline.store.dynamodb import reply_head as heads
from turnline.store.dynamodb.items import (
    EXPIRY,
    MAX_WRITE_BYTES,
    Item,
    Key,
    Value,
    expired,
    expiry,
    n,
    number,
)
from turnline.store.dynamodb.poll import Poll
from turnline.store.dynamodb.reply_head import ReplyHead
from turnline.store.dynamodb.reply_stream import ReplyReader
from turnline.store.dynamodb.segments import encode_segment, segments
from turnline.store.dynamodb.settle import Step, over, settle
from turnline.store.dynamodb.table import Table, Write, puts
from turnline.store.encoding import decode_reply, encode_reply
from turnline.store.ports import Opened, PendingReply, StoredReply, StreamItem

# A shorter end lies in the head and is read with it.
_INLINE_BYTES = 300_000
# Chunks outlast the head that counts them, so that none is missing before the answer expires.
_CHUNK_TTLS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbResponseOptions:
    """Bounds of a DynamoDbResponseStore.

    Attributes:
        ttl: seconds a turn is kept after its last write (admission, chunk, reply), rounded up to
            the next whole second.
        max_chunks: chunks read of one turn, about: those more than this behind the newest are
            gone for readers, and from the table with their TTL.
    """

    ttl: float
    max_chunks: int = 100_000


class DynamoDbResponseStore:
    """A ResponseStore that any number of processes share."""

    def __init__(self, options: DynamoDbResponseOptions, table: Table) -> None:
        self._options = options
        self._table = table
        # An entry lives as long as a reader or waiter holds it.
        self._polls: WeakValueDictionary[ReplyKey, Poll] = WeakValueDictionary()

    async def open(self, key: ReplyKey, *, session_id: str, fingerprint: str) -> Opened:
        """Record that a turn is admitted, if it is new."""

        name = heads.head_key(key.token)

        async def decide(item: Item | None, writer: str) -> Step[Opened]:
            head = self._known(item)
            if item is None or head is None:
                head = ReplyHead(session_id=session_id, born=writer)
                head = head.admitted(fingerprint, writer)
                write = self._write(item, name, head, writer, self._expiry())
                return Step(Opened.NEW, [write])
            if head.fingerprint is None:
                # Asking for a turn that is known does not let it live longer.
                head = head.admitted(fingerprint, "")
                write = self._write(item, name, head, writer, number(item, EXPIRY))
                return Step(Opened.KNOWN, [write])
            return Step(Opened.KNOWN if head.fingerprint == fingerprint else Opened.DIFFERENT)

        return await settle(self._table, name, decide)

    async def discard(self, key: ReplyKey) -> None:
        """Forget a pending turn, its chunks included; who waits for it waits on."""
        name = heads.head_key(key.token)
        lives: set[str] = set()

        async def decide(item: Item | None, _: str) -> Step[None]:
            head = self._known(item)
            lives.add(head.born if head is not None else "")
            # Whoever opened it again, after this was asked for, wants it.
            if item is None or head is None or head.kind is not None or len(lives) > 1:
                return Step(None)
            return Step(None, [over(item, name, None)])

        await settle(self._table, name, decide)

    async def put(self, key: ReplyKey, reply: StoredReply) -> None:
        """Store the end of a turn, unless it has one that stays.

        One too large for a write is not lost: a failure that says so takes its place.
        """
        end = encode_reply(reply)
        if len(end) > MAX_WRITE_BYTES:
            reply = _too_large(reply)
            end = encode_reply(reply)
        name = heads.head_key(key.token)

        async def decide(item: Item | None, writer: str) -> Step[None]:
            head = self._known(item) or ReplyHead(session_id=reply.session_id, born=writer)
            if not head.takes(reply):
                return Step(None)
            expires = self._expiry()
            if len(end) <= _INLINE_BYTES:
                ended = head.ended(reply, end=end, end_name="")
                return Step(None, [self._write(item, name, ended, writer, expires)])
            place = heads.end_name(head.born, writer)
            ended = head.ended(reply, end=None, end_name=place)
            value = Value(place, end, {EXPIRY: n(expires)})
            return Step(
                None,
                [self._write(item, name, ended, writer, expires), *puts(key.token, value)],
            )

        await settle(self._table, name, decide)
        self._hurry(key)

    async def get(self, key: ReplyKey) -> StoredReply | PendingReply | None:
        """Read what is known now."""
        async with self._table.deadline():
            while True:
                item = await self._table.get(heads.head_key(key.token))
                head = self._known(item)
                if head is None:
                    return None
                if head.kind is None:
                    return PendingReply(request_id=key.request_id, session_id=head.session_id)
                reply = await self._end(key.token, head)
                if reply is not None:
                    return reply

    async def wait(self, key: ReplyKey, timeout: float) -> StoredReply | None:
        """Wait for the end.

        An outage in the middle of the wait is waited through; one that lasts until `timeout` is
        StoreUnavailableError, for then nobody knows.
        """
        clock = self._table.clock
        until = clock.monotonic() + timeout
        poll = self._poll(key)
        poll.hurry()
        while clock.monotonic() < until:
            await poll.news(poll.version, until=until)
            head = self._known(poll.seen)
            if head is not None and head.kind is not None:
                try:
                    reply = await self._end(key.token, head)
                except StoreUnavailableError:
                    continue
                if reply is not None:
                    return reply
        found = await self.get(key)
        return found if isinstance(found, StoredReply) else None

    async def append(self, key: ReplyKey, *, session_id: str, chunks: Sequence[Chunk]) -> None:
        """Add chunks, dropping what is stale, known already or too late."""
        for segment in segments(chunks):
            await self._append(key, session_id, segment)
        if chunks:
            self._hurry(key)

    def stream(self, key: ReplyKey, after: Position) -> AsyncIterator[StreamItem]:
        """Read behind `after`, here or in any other process."""
        return ReplyReader(self._table, self._poll(key), key.token, after, self._end)

    async def check(self) -> None:
        """Return if the table answers."""
        await self._table.check()

    # --- writing --------------------------------------------------------------------------------

    async def _append(self, key: ReplyKey, session_id: str, chunks: Sequence[Chunk]) -> None:
        name = heads.head_key(key.token)

        async def decide(item: Item | None, writer: str) -> Step[None]:
            head = self._known(item) or ReplyHead(session_id=session_id, born=writer)
            taken = head.fresh(chunks)
            if not taken:
                return Step(None)
            grown = head.extended(taken, max_chunks=self._options.max_chunks)
            place = heads.chunk_name(head.born, grown.attempt, grown.last)
            expires = expiry(self._table.clock.time(), self._options.ttl * _CHUNK_TTLS)
            value = Value(place, encode_segment(taken), {EXPIRY: n(expires)})
            return Step(
                None,
                [
                    self._write(item, name, grown, writer, self._expiry()),
                    *puts(key.token, value),
                ],
            )

        await settle(self._table, name, decide)

    def _write(
        self, seen: Item | None, name: Key, head: ReplyHead, writer: str, expires: int
    ) -> Write:
        return over(seen, name, heads.to_item(head, writer=writer, expires=expires))

    # --- reading --------------------------------------------------------------------------------

    async def _end(self, token: str, head: ReplyHead) -> StoredReply | None:
        """Read the end a head speaks of; None: another took its place meanwhile."""
        if head.end is not None:
            return decode_reply(head.end)
        found = await self._table.value(token, head.end_name)
        return decode_reply(found[0]) if found is not None else None

    def _known(self, item: Item | None) -> ReplyHead | None:
        if item is None or expired(item, self._table.clock.time()):
            return None
        return heads.from_item(item)

    def _expiry(self) -> int:
        return expiry(self._table.clock.time(), self._options.ttl)

    def _poll(self, key: ReplyKey) -> Poll:
        poll = self._polls.get(key)
        if poll is None:
            name = heads.head_key(key.token)
            poll = self._polls[key] = Poll(lambda: self._table.look(name), self._table.clock)
        return poll

    def _hurry(self, key: ReplyKey) -> None:
        poll = self._polls.get(key)
        if poll is not None:
            poll.hurry()


def _too_large(reply: StoredReply) -> StoredReply:
    failure = Failure.from_error(
        PayloadTooLargeError(
            "The answer is too large for the response store",
            limit_bytes=MAX_WRITE_BYTES,
            field="",
        )
    )
    return replace(reply, payload=failure, status_code=failure.status_code)
