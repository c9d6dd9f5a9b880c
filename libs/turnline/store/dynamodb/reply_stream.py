"""One reader of one reply's stream, from any position and in any process."""

from collections.abc import Awaitable, Callable

from turnline.errors import StoreUnavailableError
from turnline.protocol import Position
from turnline.store.dynamodb.items import Item, expired, whole
from turnline.store.dynamodb.poll import Poll
from turnline.store.dynamodb.reply_head import ReplyHead, chunk_name, from_item
from turnline.store.dynamodb.segments import decode_segment
from turnline.store.dynamodb.table import Table
from turnline.store.ports import StoredReply, StreamItem
from turnline.store.stream_place import StreamPlace
from turnline.store.unread import Unread

ITEMS_IN_ONE_READ = 16


class ReplyReader:
    """Reads a stream from one position on; an async iterator, one consumer.

    Cancelling the wait for an item loses nothing: the next call goes on from the same place.
    """

    def __init__(
        self,
        table: Table,
        poll: Poll,
        token: str,
        after: Position,
        read_end: Callable[[str, ReplyHead], Awaitable[StoredReply | None]],
    ) -> None:
        self._table = table
        self._poll = poll
        self._token = token
        self._read_end = read_end
        self._place = StreamPlace(after)
        self._unread = Unread(self._place)
        # The look behind which nothing is left to read; None when there may be more.
        self._seen: int | None = None
        self._entered = False
        # Whether an end was seen behind chunks that are still to be read.
        self._finished = False
        self._over = False

    def __aiter__(self) -> "ReplyReader":
        return self

    async def __anext__(self) -> StreamItem:
        while not self._over:
            item = self._unread.next()
            if isinstance(item, StoredReply):
                self._over = True
            if item is not None:
                return item
            await self._read()
        raise StopAsyncIteration

    async def _read(self) -> None:
        """Fetch what comes next, once there is reason to look."""
        if not self._entered:
            self._entered = True
            self._poll.hurry()
            await self._poll.news(self._poll.version)
        elif self._seen is not None:
            await self._poll.news(self._seen)
        version, item = self._poll.version, self._poll.seen
        head = self._known(item)
        if head is None:
            self._seen = version
            # It expired while it was read.
            self._over = self._finished
            return
        self._finished = head.kind is not None
        try:
            more = await self._fetch(head)
            if not more and not self._unread and head.kind is not None:
                reply = await self._read_end(self._token, head)
                if reply is not None:
                    self._unread.finish(reply)
        except StoreUnavailableError:
            # Waited through, as every outage here: the next look tells when it is over.
            more = False
        self._seen = None if more else version

    async def _fetch(self, head: ReplyHead) -> bool:
        """Read chunks behind the position, some at a time; gives whether there may be more."""
        if head.attempt == 0 or head.attempt < self._place.attempt:
            return False
        after = self._place.index if head.attempt == self._place.attempt else -1
        after = max(after, head.floor - 1)
        if after >= head.last:
            return False
        first = chunk_name(head.born, head.attempt, after + 1)
        last = chunk_name(head.born, head.attempt, head.last) + "#99"
        items = await self._table.between(self._token, first, last, limit=ITEMS_IN_ONE_READ)
        for _, raw, _ in whole(items):
            for chunk in decode_segment(head.attempt, raw):
                if chunk.index > after:
                    self._unread.add(chunk)
        return bool(self._unread)

    def _known(self, item: Item | None) -> ReplyHead | None:
        if item is None or expired(item, self._table.clock.time()):
            return None
        return from_item(item)
