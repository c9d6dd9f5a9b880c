"""The books of one process; see `turnline.transport.Bookkeeping`.

Right as long as the process lives and nobody else reads or sends.  A restart begins every count
anew, so a message that kills its worker is tried again without end: settings that keep sessions on
Valkey or Redis keep the books there.
"""

from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from turnline.protocol.clock import Clock
from turnline.transport.port import Admission

_T = TypeVar("_T")

# Counts, ids and marks held per queue; the oldest give way.
MAX_ENTRIES = 100_000


@dataclass(slots=True)
class _Mark:
    """Where the first record of an id lies, and when it was sent."""

    record: str
    sent_at: float


@dataclass(slots=True)
class _Book:
    """What is remembered of one queue.

    Attributes:
        ids: what was or is being sent, by id -> until when; True: it was.
        room: group and place of what is not finished, by id; None: place not known yet.
        shares: how much of that each group holds.
        tries: deliveries counted, by record.
        marks: first records, by id.
    """

    ids: OrderedDict[str, tuple[float, bool]] = field(default_factory=OrderedDict)
    room: dict[str, tuple[str, tuple[int, int] | None]] = field(default_factory=dict)
    shares: Counter[str] = field(default_factory=Counter)
    tries: OrderedDict[str, int] = field(default_factory=OrderedDict)
    marks: OrderedDict[str, _Mark] = field(default_factory=OrderedDict)


class LocalBookkeeping:
    """Books in a dictionary."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._books: dict[str, _Book] = {}

    @property
    def shared(self) -> bool:
        """No."""
        return False

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
        book, now = self._book(queue), self._clock.monotonic()
        until, was_sent = book.ids.get(dedup_id, (now, False))
        if until > now:
            return "copy" if was_sent else "pending"
        if len(book.room) >= max_messages:
            return "queue_full"
        if max_per_group and book.shares[group] >= max_per_group:
            return "group_full"
        self._expire(book, now)
        _put(book.ids, dedup_id, (now + patience, False))
        self._take_room(book, dedup_id, group)
        return "taken"

    async def sent(
        self, queue: str, dedup_id: str, group: str, *, window: float, place: tuple[int, int] | None
    ) -> None:
        """Say what became of it."""
        book = self._book(queue)
        if place is None or not window:
            book.ids.pop(dedup_id, None)
        else:
            _put(book.ids, dedup_id, (self._clock.monotonic() + window, True))
        if place is None:
            self._give_back(book, dedup_id)
        elif dedup_id in book.room:
            book.room[dedup_id] = (group, place)

    async def begin(
        self, queue: str, record: str, dedup_id: str, *, sent_at: float, window: float
    ) -> int:
        """Count a delivery."""
        book = self._book(queue)
        first = book.marks.get(dedup_id) if dedup_id else None
        if first is not None and first.record != record and sent_at - first.sent_at < window:
            return 0
        if dedup_id:
            _put(book.marks, dedup_id, _Mark(record, sent_at))
        _put(book.tries, record, book.tries.get(record, 0) + 1)
        return book.tries[record]

    async def unspend(self, queue: str, record: str) -> None:
        """Take back one count."""
        tries = self._book(queue).tries
        if tries.get(record, 0) > 0:
            tries[record] -= 1

    async def finish(
        self, queue: str, record: str, dedup_id: str, group: str, *, window: float
    ) -> None:
        """Forget a record."""
        book = self._book(queue)
        book.tries.pop(record, None)
        self._give_back(book, dedup_id)

    async def forget(self, queue: str, below: Mapping[int, int]) -> None:
        """Give back the room of what lies below these offsets."""
        book = self._book(queue)
        for dedup_id, (_, place) in list(book.room.items()):
            if place is not None and place[1] < below.get(place[0], 0):
                self._give_back(book, dedup_id)

    def _book(self, queue: str) -> _Book:
        return self._books.setdefault(queue, _Book())

    def _expire(self, book: _Book, now: float) -> None:
        """Drop the oldest ids as far as their time is over."""
        while book.ids and next(iter(book.ids.values()))[0] <= now:
            book.ids.popitem(last=False)

    def _take_room(self, book: _Book, dedup_id: str, group: str) -> None:
        self._give_back(book, dedup_id)
        book.room[dedup_id] = (group, None)
        book.shares[group] += 1

    def _give_back(self, book: _Book, dedup_id: str) -> None:
        group, _ = book.room.pop(dedup_id, ("", None))
        if group:
            book.shares[group] -= 1
            if not book.shares[group]:
                del book.shares[group]


def _put(entries: OrderedDict[str, _T], key: str, value: _T) -> None:
    entries[key] = value
    entries.move_to_end(key)
    if len(entries) > MAX_ENTRIES:
        entries.popitem(last=False)
