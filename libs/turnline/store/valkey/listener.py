"""Being told of changes: one subscribed connection for everybody in this process who waits.

A message says "look again" and nothing more, so that one too many does no harm.  None is missed:
a watch is ready only when the server confirmed its channel, and whenever that had to be done anew
(after a lost connection) everybody looks again.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from turnline.protocol.clock import Clock
from turnline.store.valkey.link import Connect, Link, Reply

BEAT_SECONDS = 1.0
# How long a wait for a subscription keeps from looking.
SUBSCRIBE_SECONDS = 1.0
# Between looks that nothing called for, against what nobody thought of.
LOOK_SECONDS = 15.0
# Channels in one SUBSCRIBE after a reconnect.
_BATCH = 500


class Watch:
    """What those who wait for one channel share.

    Attributes:
        users: how many they are; the subscription ends with the last.
        version: grows with each piece of news.
        ready: set while the server is known to tell this process.
    """

    __slots__ = ("_changed", "channel", "ready", "users", "version")

    def __init__(self, channel: bytes) -> None:
        self.channel = channel
        self.users = 0
        self.version = 0
        self.ready = asyncio.Event()
        self._changed = asyncio.Event()

    def notify(self) -> None:
        """Have everybody look again."""
        self.version += 1
        self._changed.set()
        self._changed.clear()

    async def begin(self) -> None:
        """Wait until nothing can be missed any more, for a short while at most.

        Without a subscription those who wait look now and then all the same; they are just late.
        """
        if self.ready.is_set():
            return
        try:
            async with asyncio.timeout(SUBSCRIBE_SECONDS):
                await self.ready.wait()
        except TimeoutError:
            return

    async def change(self, seen: int) -> None:
        """Return when it is time to look again.

        That is when there is something newer than version `seen`, which is to be read before one
        looks, and after a while in any case.
        """
        try:
            within = LOOK_SECONDS if self.ready.is_set() else SUBSCRIBE_SECONDS
            async with asyncio.timeout(within):
                while self.version == seen:
                    await self._changed.wait()
        except TimeoutError:
            return


class Listener:
    """Subscriptions of this process, brought back after every lost connection."""

    def __init__(self, connect: Connect, clock: Clock, *, name: str, deadline: float) -> None:
        """Wire it; `link.run` must run."""
        self._watches: dict[bytes, Watch] = {}
        # Channels the server was asked for on this connection and not asked to forget.
        self._asked: set[bytes] = set()
        self._confirmed: set[bytes] = set()
        # Channels without a watch that the server is still to be told of.
        self._unwatched: list[bytes] = []
        # Filled by `leave_later` in any thread, emptied by `beat`.
        self._leaving: deque[Watch] = deque()
        self._up = False
        self.link = Link(connect, self, clock, name=name, deadline=deadline, beat=BEAT_SECONDS)

    @property
    def subscriptions(self) -> int:
        """How many channels this process is subscribed to."""
        return len(self._asked)

    @contextmanager
    def watching(self, channel: bytes) -> Iterator[Watch]:
        """Watch a channel for the length of the block."""
        watch = self.enter(channel)
        try:
            yield watch
        finally:
            self._leave(watch)

    def enter(self, channel: bytes) -> Watch:
        """Watch a channel until `leave_later`; subscribes if nobody watches it yet."""
        watch = self._watches.get(channel)
        if watch is None:
            watch = self._watches[channel] = Watch(channel)
            if channel in self._confirmed:
                watch.ready.set()
            elif self._up and channel not in self._asked:
                self._ask("SUBSCRIBE", channel)
        watch.users += 1
        return watch

    def leave_later(self, watch: Watch) -> None:
        """Stop watching within a second; may be called from a finalizer, in any thread."""
        self._leaving.append(watch)

    def _leave(self, watch: Watch) -> None:
        watch.users -= 1
        if not watch.users:
            del self._watches[watch.channel]
            self._unwatched.append(watch.channel)

    def _drop_left(self) -> None:
        while self._leaving:
            self._leave(self._leaving.popleft())

    def _ask(self, verb: str, *channels: bytes) -> None:
        if verb == "SUBSCRIBE":
            self._asked.update(channels)
        else:
            self._asked.difference_update(channels)
            self._confirmed.difference_update(channels)
        self.link.send(verb, *channels)

    # --- what the link reports ------------------------------------------------------------------

    def up(self) -> None:
        """Subscribe to everything that is watched."""
        self._up = True
        channels = list(self._watches)
        for start in range(0, len(channels), _BATCH):
            self._ask("SUBSCRIBE", *channels[start : start + _BATCH])

    def down(self, error: Exception) -> None:
        """Nothing is subscribed any more."""
        self._up = False
        self._drop_left()
        self._asked.clear()
        self._confirmed.clear()
        self._unwatched.clear()
        self.link.forget_waiting()
        for watch in self._watches.values():
            watch.ready.clear()

    def sent(self, owed: "asyncio.Future[Reply]") -> None:
        """Nothing is owed here: everything comes as a message."""

    def received(self, reply: Reply) -> None:
        """Take a message or a confirmation; anything else is a sign of life."""
        if not isinstance(reply, list) or len(reply) < 2:
            return
        kind, channel = reply[0], reply[1]
        if kind == b"message":
            watch = self._watches.get(channel)
            if watch is not None:
                watch.notify()
        elif kind == b"subscribe" and channel in self._asked:
            self._confirmed.add(channel)
            watch = self._watches.get(channel)
            if watch is not None:
                watch.ready.set()
                # Something may have been said before this confirmation and after an earlier look.
                watch.notify()

    def beat(self) -> None:
        """Drop what nobody watches any more, and ask for a sign of life."""
        self._drop_left()
        gone = [
            channel
            for channel in dict.fromkeys(self._unwatched)
            if channel not in self._watches and channel in self._asked
        ]
        self._unwatched.clear()
        for start in range(0, len(gone), _BATCH):
            self._ask("UNSUBSCRIBE", *gone[start : start + _BATCH])
        self.link.send("PING")
