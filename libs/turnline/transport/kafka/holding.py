"""What a member of a group holds: partitions, and the records read from them."""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from confluent_kafka import Message

from turnline.protocol import Envelope
from turnline.transport.kafka.progress import Progress

if TYPE_CHECKING:
    from turnline.transport.kafka.held import Held

DEDUP_HEADERS = ("ak-dedup-id", "dedup_id")
_MILLISECONDS = 1000


@dataclass(frozen=True, slots=True)
class Prepared:
    """A record that can be handed out: decoded and counted."""

    envelope: Envelope
    attempt: int


@dataclass(slots=True, eq=False, kw_only=True)
class Holding:
    """One partition while it is ours; made anew with each assignment.

    Written by the loop, but for `lost`, which either side sets and nobody clears, and for what
    begins with `read_`, which the member's thread counts.

    Attributes:
        progress: what was read and done.
        lost: it is not ours any more, and nothing read from it is.
        leaving: it will not be ours soon; nothing is handed out any more.
        read_to / read_count / read_weight: the offset behind the last record read, how many were
            read, and their bytes.
        done_count / done_weight: how many of these are done or were before, and their bytes.
        lanes: the records, by key.
    """

    partition: int
    progress: Progress
    lost: bool = False
    leaving: bool = False
    read_to: int = 0
    read_count: int = 0
    read_weight: int = 0
    done_count: int = 0
    done_weight: int = 0
    lanes: "dict[bytes | None, Lane]" = field(default_factory=dict)

    @property
    def buffered(self) -> int:
        """Records read and not done."""
        return self.read_count - self.done_count

    @property
    def weight(self) -> int:
        """Bytes of these."""
        return self.read_weight - self.done_weight

    @property
    def span(self) -> int:
        """Offsets from the lowest that is not done to the last one read."""
        base = self.progress.base
        return self.buffered if base is None else max(0, self.read_to - base)

    def note_read(self, record: "Record") -> None:
        """Count a record that was read; in the thread."""
        self.read_to = record.offset + 1
        self.read_count += 1
        self.read_weight += record.weight

    def note_done(self, record: "Record") -> None:
        """Count a record that is done, or was before."""
        self.done_count += 1
        self.done_weight += record.weight


@dataclass(slots=True, eq=False, kw_only=True)
class Record:
    """One record read and not done.

    Attributes:
        prepared: the work of making it ready, once it began; its result is None if the record
            turned out to need no delivery.
    """

    holding: Holding
    offset: int
    at_ms: int
    key: bytes | None
    raw: bytes
    headers: Mapping[str, str]
    prepared: "asyncio.Future[Prepared | None] | None" = None

    @property
    def name(self) -> str:
        """Names the record for ever, also after its topic was made anew."""
        return f"{self.holding.partition}-{self.offset}-{self.at_ms}"

    @property
    def sent_at(self) -> float:
        """Seconds since the epoch."""
        return self.at_ms / _MILLISECONDS

    @property
    def dedup_id(self) -> str:
        """What names the envelope it carries; empty: nobody said."""
        return next((self.headers[name] for name in DEDUP_HEADERS if name in self.headers), "")

    @property
    def weight(self) -> int:
        """Bytes it takes, about."""
        return len(self.raw) + len(self.key or b"") + 200


@dataclass(slots=True, eq=False, kw_only=True)
class Lane:
    """The records of one key in a partition, oldest first.

    Attributes:
        taken: its head is with a reader, or on the way to one.
        resting: its head waits for its retry.
        out: the delivery of its head; None: none is out.
    """

    holding: Holding
    key: bytes | None
    records: deque[Record] = field(default_factory=deque)
    taken: bool = False
    resting: bool = False
    out: "Held | None" = None

    @property
    def is_live(self) -> bool:
        """Whether its partition is ours, and will be."""
        return not self.holding.lost and not self.holding.leaving

    @property
    def is_free(self) -> bool:
        """Whether its head may be handed out."""
        return self.is_live and bool(self.records) and not self.taken and not self.resting


def record_of(message: Message, holding: Holding) -> Record:
    """Read what the library gave."""
    offset, (_, at_ms) = message.offset(), message.timestamp()
    return Record(
        holding=holding,
        offset=offset if offset is not None else -1,
        at_ms=max(0, at_ms),
        key=message.key(),
        raw=message.value() or b"",
        headers=headers_of(message),
    )


def headers_of(message: Message) -> dict[str, str]:
    """Give a record's headers as text; of several of one name the last."""
    found = message.headers() or ()
    pairs = found.items() if isinstance(found, dict) else found
    return {
        name: value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
        for name, value in pairs
    }
