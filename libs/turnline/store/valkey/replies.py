"""Replies and their streams on a Valkey or Redis server."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from turnline.errors import StoreUnavailableError
from turnline.protocol import ChatReply, Chunk, Position, ReplyKey
from turnline.store.encoding import decode_reply, encode_chunk, encode_reply
from turnline.store.ports import Opened, PendingReply, StoredReply, StreamItem
from turnline.store.valkey import reply_scripts as scripts
from turnline.store.valkey.commands import Commands
from turnline.store.valkey.keys import ReplyNames, reply_names
from turnline.store.valkey.link import Argument
from turnline.store.valkey.listener import Listener
from turnline.store.valkey.reply_stream import ReplyReader

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ValkeyResponseOptions:
    """Bounds of a ValkeyResponseStore.

    Attributes:
        prefix: what names on the server begin with.
        ttl: seconds a turn is kept after its last write (admission, chunk, reply).
        max_chunks: chunks kept of one turn; the oldest give way.
        max_chunk_bytes: their size together; the oldest give way, the newest stays.
    """

    prefix: str
    ttl: float
    max_chunks: int = 100_000
    max_chunk_bytes: int = 32 * MIB


class ValkeyResponseStore:
    """A ResponseStore that any number of processes share."""

    def __init__(
        self, options: ValkeyResponseOptions, commands: Commands, listener: Listener
    ) -> None:
        self._options = options
        self._ttl = max(1, round(options.ttl * 1000))
        self._commands = commands
        self._listener = listener

    async def open(self, key: ReplyKey, *, session_id: str, fingerprint: str) -> Opened:
        """Record that a turn is admitted, if it is new."""
        keys = self._names(key)[:2]
        found: bytes = await self._commands.run(
            scripts.OPEN, keys, self._ttl, session_id, fingerprint
        )
        return Opened(found.decode())

    async def discard(self, key: ReplyKey) -> None:
        """Forget a pending turn, its chunks included; who waits for it waits on."""
        await self._commands.run(scripts.DISCARD, self._names(key)[:2])

    async def put(self, key: ReplyKey, reply: StoredReply) -> None:
        """Store the end of a turn, unless it has one that stays."""
        names = self._names(key)
        await self._commands.run(
            scripts.PUT,
            names[:2],
            self._ttl,
            reply.session_id,
            encode_reply(reply),
            "reply" if isinstance(reply.payload, ChatReply) else "failure",
            reply.attempt,
            names.ended,
            names.changed,
        )

    async def get(self, key: ReplyKey) -> StoredReply | PendingReply | None:
        """Read what is known now."""
        session, end = await self._commands.call("HMGET", self._names(key).head, "session", "end")
        if end is not None:
            return decode_reply(end)
        if session is None:
            return None
        return PendingReply(request_id=key.request_id, session_id=session.decode())

    async def wait(self, key: ReplyKey, timeout: float) -> StoredReply | None:
        """Wait for the end.

        An outage in the middle of the wait is waited through; one that lasts until `timeout` is
        StoreUnavailableError, for then nobody knows.
        """
        names = self._names(key)
        if timeout > 0:
            try:
                async with asyncio.timeout(timeout):
                    return await self._end(names)
            except TimeoutError:
                pass
        return await self._look(names)

    async def append(self, key: ReplyKey, *, session_id: str, chunks: Sequence[Chunk]) -> None:
        """Add chunks, dropping what is stale, known already or too late."""
        if not chunks:
            return
        names, options = self._names(key), self._options
        placed: list[Argument] = []
        for chunk in chunks:
            placed += (chunk.attempt, chunk.index, encode_chunk(chunk))
        await self._commands.run(
            scripts.APPEND,
            names[:2],
            self._ttl,
            session_id,
            options.max_chunks,
            options.max_chunk_bytes,
            names.changed,
            *placed,
        )

    def stream(self, key: ReplyKey, after: Position) -> AsyncIterator[StreamItem]:
        """Read behind `after`, here or in any other process."""
        return ReplyReader(self._commands, self._listener, self._names(key), after)

    async def check(self) -> None:
        """Return if the server answers."""
        await self._commands.call("PING")

    async def _end(self, names: ReplyNames) -> StoredReply:
        with self._listener.watching(names.ended) as watch:
            await watch.begin()
            while True:
                seen = watch.version
                try:
                    reply = await self._look(names)
                except StoreUnavailableError:
                    reply = None
                if reply is not None:
                    return reply
                await watch.change(seen)

    async def _look(self, names: ReplyNames) -> StoredReply | None:
        end: bytes | None = await self._commands.call("HGET", names.head, "end")
        return decode_reply(end) if end is not None else None

    def _names(self, key: ReplyKey) -> ReplyNames:
        return reply_names(self._options.prefix, key)
