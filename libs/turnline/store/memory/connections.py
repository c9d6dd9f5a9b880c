"""Connections and held frames, kept in this process.

Everything happens between two awaits, so each method is atomic.  Both maps stand in the order in
which their entries expire, so clearing away looks only at the front.
"""

import itertools
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from turnline.protocol.clock import Clock
from turnline.store.json_values import decode_object, encode_json
from turnline.store.ports import Connection, Held


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConnectionOptions:
    """Bounds of a MemoryConnectionStore; each at least 1.

    Attributes:
        ttl: seconds a connection is kept after it was last added.
        held_ttl: seconds a frame is held.
        max_held_per_user: frames held for one user; the oldest give way.
        max_held_users: users with held frames; the one longest without a new frame gives way.
    """

    ttl: float = 86_400.0
    held_ttl: float = 86_400.0
    max_held_per_user: int = 100
    max_held_users: int = 10_000


@dataclass(frozen=True, slots=True)
class _Frame:
    number: int
    until: float
    body: bytes


@dataclass(slots=True)
class _Held:
    frames: deque[_Frame]
    until: float = 0.0


class MemoryConnectionStore:
    """A ConnectionStore that lives and ends with its process."""

    def __init__(self, options: MemoryConnectionOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._expiry: OrderedDict[tuple[str, str], float] = OrderedDict()
        self._by_user: dict[str, dict[str, Connection]] = {}
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._numbers = itertools.count(1)

    @property
    def size(self) -> tuple[int, int]:
        """How many connections are kept, and for how many users frames are held."""
        return len(self._expiry), len(self._held)

    async def add(self, connection: Connection) -> None:
        """Record a socket, or refresh its expiry; its place among the user's stays."""
        now = self._expire()
        user_id, connection_id = connection.user_id, connection.connection_id
        self._by_user.setdefault(user_id, {})[connection_id] = connection
        self._expiry[user_id, connection_id] = now + self._options.ttl
        self._expiry.move_to_end((user_id, connection_id))

    async def remove(self, user_id: str, connection_id: str) -> None:
        """Forget a socket."""
        if self._expiry.pop((user_id, connection_id), None) is not None:
            self._forget(user_id, connection_id)

    async def connections_of(self, user_id: str) -> Sequence[Connection]:
        """Give the live sockets of a user, oldest first."""
        self._expire()
        return tuple(self._by_user.get(user_id, {}).values())

    async def hold(self, user_id: str, frame: dict[str, Any]) -> None:
        """Keep a frame for a user who has no socket now."""
        body = encode_json(frame, name="frame")
        until = self._expire() + self._options.held_ttl
        held = self._held.get(user_id)
        if held is None:
            held = self._held[user_id] = _Held(deque(maxlen=self._options.max_held_per_user))
        held.frames.append(_Frame(next(self._numbers), until, body))
        held.until = until
        self._held.move_to_end(user_id)
        if len(self._held) > self._options.max_held_users:
            self._held.popitem(last=False)

    async def held(self, user_id: str) -> Held:
        """Give the held frames."""
        now = self._expire()
        held = self._held.get(user_id)
        frames = [frame for frame in held.frames if frame.until > now] if held else []
        return Held(
            frames=tuple([decode_object(frame.body) for frame in frames]),
            through=str(frames[-1].number) if frames else "",
        )

    async def drop_held(self, user_id: str, through: str) -> None:
        """Forget the held frames up to one that was given."""
        held = self._held.get(user_id)
        if held is None:
            return
        while held.frames and held.frames[0].number <= int(through or 0):
            held.frames.popleft()
        if not held.frames:
            del self._held[user_id]

    def _expire(self) -> float:
        now = self._clock.monotonic()
        while self._expiry:
            (user_id, connection_id), until = next(iter(self._expiry.items()))
            if until > now:
                break
            del self._expiry[user_id, connection_id]
            self._forget(user_id, connection_id)
        while self._held and next(iter(self._held.values())).until <= now:
            self._held.popitem(last=False)
        return now

    def _forget(self, user_id: str, connection_id: str) -> None:
        connections = self._by_user[user_id]
        del connections[connection_id]
        if not connections:
            del self._by_user[user_id]
