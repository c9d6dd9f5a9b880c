"""Delivery counts, deduplication and room of a transport's queues, on a Valkey or Redis server.

Implements `turnline.transport.Bookkeeping` without knowing it: hosting puts the two together.  Each
queue's names share one hash tag, so that a script may touch them all.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from turnline.store.valkey import bookkeeping_scripts as scripts
from turnline.store.valkey.commands import Commands

_MILLISECONDS = 1000
Admission = Literal["taken", "copy", "pending", "queue_full", "group_full"]
_ADMISSIONS: Mapping[bytes, Admission] = {
    b"taken": "taken",
    b"copy": "copy",
    b"pending": "pending",
    b"queue_full": "queue_full",
    b"group_full": "group_full",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ValkeyBookkeepingOptions:
    """Bounds of a ValkeyBookkeeping.

    Attributes:
        prefix: what names on the server begin with.
        keep: seconds after which an entry that nobody finished is given up.
    """

    prefix: str
    keep: float


class ValkeyBookkeeping:
    """Books that any number of processes share."""

    def __init__(self, options: ValkeyBookkeepingOptions, commands: Commands) -> None:
        self._prefix = options.prefix
        self._keep = _ms(options.keep)
        self._commands = commands

    @property
    def shared(self) -> bool:
        """Yes."""
        return True

    async def admit(
        self,
        queue: str,
        dedup_id: str,
        group: str,
        *,
        patience: float,
        max_messages: int,
        max_per_group: int,
    ) -> Admission:
        """Take in what is about to be sent."""
        verdict = await self._commands.run(
            scripts.ADMIT,
            self._sending(queue, dedup_id, group),
            dedup_id,
            _ms(patience),
            self._keep,
            max_messages,
            max_per_group,
        )
        return _ADMISSIONS[verdict]

    async def sent(
        self, queue: str, dedup_id: str, group: str, *, window: float, place: tuple[int, int] | None
    ) -> None:
        """Say what became of it; where it lies is of no use here."""
        keys = self._sending(queue, dedup_id, group)
        if place is None:
            await self._commands.run(scripts.UNSENT, keys, dedup_id)
        elif _ms(window):
            await self._commands.call("SET", keys[0], scripts.SENT, "PX", _ms(window))
        else:
            await self._commands.call("DEL", keys[0])

    async def begin(
        self, queue: str, record: str, dedup_id: str, *, sent_at: float, window: float
    ) -> int:
        """Count a delivery."""
        keys = (self._name(queue, "tries", record), self._name(queue, "mark", dedup_id))
        has_id = 1 if dedup_id else 0
        tries = await self._commands.run(
            scripts.BEGIN, keys, record, _ms(sent_at), _ms(window), self._keep, has_id
        )
        return int(tries)

    async def unspend(self, queue: str, record: str) -> None:
        """Take back one count."""
        await self._commands.run(scripts.UNSPEND, (self._name(queue, "tries", record),))

    async def finish(
        self, queue: str, record: str, dedup_id: str, group: str, *, window: float
    ) -> None:
        """Forget a record."""
        keys = (
            self._name(queue, "tries", record),
            self._name(queue, "mark", dedup_id),
            *self._sending(queue, dedup_id, group)[1:],
        )
        await self._commands.run(scripts.FINISH, keys, dedup_id, _ms(window))

    async def forget(self, queue: str, below: Mapping[int, int]) -> None:
        """Nothing to do: whoever finishes a record says so here."""

    def _sending(self, queue: str, dedup_id: str, group: str) -> tuple[bytes, bytes, bytes]:
        return (
            self._name(queue, "id", dedup_id),
            self._name(queue, "room"),
            self._name(queue, "share", group),
        )

    def _name(self, queue: str, kind: str, name: str = "") -> bytes:
        return f"{self._prefix}{{queue:{queue}}}:{kind}:{name}".encode()


def _ms(seconds: float) -> int:
    return max(0, round(seconds * _MILLISECONDS))
