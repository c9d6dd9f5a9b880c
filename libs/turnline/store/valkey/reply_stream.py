"""One reader of one reply's stream, from any position and in any process."""

from weakref import finalize

from turnline.protocol import Position
from turnline.store.encoding import decode_chunk, decode_reply
from turnline.store.ports import StoredReply, StreamItem
from turnline.store.stream_place import StreamPlace
from turnline.store.unread import Unread
from turnline.store.valkey.commands import Commands
from turnline.store.valkey.keys import ReplyNames
from turnline.store.valkey.listener import Listener, Watch
from turnline.store.valkey.reply_scripts import READ

CHUNKS_IN_ONE_READ = 256


class ReplyReader:
    """Reads a stream from one position on; an async iterator, one consumer.

    Cancelling the wait for an item loses nothing: the next call goes on from the same place.  The
    subscription lasts until the end was read or the reader is dropped.
    """

    def __init__(
        self, commands: Commands, listener: Listener, names: ReplyNames, after: Position
    ) -> None:
        self._commands = commands
        self._listener = listener
        self._names = names
        self._place = StreamPlace(after)
        self._unread = Unread(self._place)
        self._watch: Watch | None = None
        self._dropped: finalize[[Watch], ReplyReader] | None = None
        # The watch's version when all there was had been read; None when there may be more.
        self._seen: int | None = None
        # Whether an end was seen behind chunks that are still to be read.
        self._finished = False
        self._over = False

    def __aiter__(self) -> "ReplyReader":
        return self

    async def __anext__(self) -> StreamItem:
        while not self._over:
            item = self._unread.next()
            if isinstance(item, StoredReply):
                self._leave()
            if item is not None:
                return item
            await self._read()
        raise StopAsyncIteration

    def _enter(self) -> Watch:
        watch = self._watch = self._listener.enter(self._names.changed)
        # Nobody says when a reader is dropped.
        self._dropped = finalize(self, self._listener.leave_later, watch)
        self._dropped.atexit = False
        return watch

    def _leave(self) -> None:
        self._over = True
        if self._dropped is not None:
            self._dropped()

    async def _read(self) -> None:
        """Fetch what comes next, once there is reason to look."""
        watch = self._watch or self._enter()
        if self._seen is None:
            await watch.begin()
        else:
            await watch.change(self._seen)
        version = watch.version
        known, end, entries = await self._commands.run(
            READ,
            self._names[:2],
            self._place.attempt,
            self._place.index,
            CHUNKS_IN_ONE_READ,
        )
        # After a full read there is more, whether or not anything happens.
        self._seen = version if len(entries) < CHUNKS_IN_ONE_READ else None
        for entry_id, (_, body) in entries:
            attempt, _, place = entry_id.partition(b"-")
            self._unread.add(decode_chunk(int(attempt), int(place) - 1, body))
        if end is not None:
            self._finished = True
            if end:
                self._unread.finish(decode_reply(end))
        elif self._finished and not known:
            # It expired while it was read.
            self._leave()
