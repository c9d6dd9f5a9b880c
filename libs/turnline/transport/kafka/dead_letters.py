"""The dead letters of one queue, a topic; see `turnline.transport.DeadLetters` and ADR 0010.

A letter's key is the name of the record it was, so burying a record again after a crash replaces
its letter.  A letter goes by a tombstone, a record of its key without a value: what is alive is
what reading the topic from its start leaves over, for every process alike.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import Message

from turnline.errors import (
    NotFoundError,
    PayloadTooLargeError,
    UndecodableError,
)
from turnline.protocol import ChatRequest, Envelope
from turnline.protocol.clock import Clock
from turnline.protocol.codec import encode
from turnline.protocol.json_body import decode_any
from turnline.telemetry import get_logger
from turnline.transport.kafka.admin import Admin, Offsets
from turnline.transport.kafka.errors import unavailable
from turnline.transport.kafka.holding import Record, headers_of
from turnline.transport.kafka.options import QueueOptions
from turnline.transport.kafka.outbox import Outbox
from turnline.transport.kafka.producer import ConfirmedProducer, Outgoing
from turnline.transport.kafka.reader import LogReader
from turnline.transport.port import DeadLetter

_log = get_logger("transport")

_OWN = "turnline-"
REASON = _OWN + "reason"
ATTEMPT = _OWN + "attempt"
KEY = _OWN + "key"
TOPIC = _OWN + "topic"
MAX_REASON_CHARACTERS = 500
# Brokers drop a tombstone some time (`delete.retention.ms`, usually a day) after its letter: who
# has not looked for longer may have missed it, and begins anew.
_LOOKED_SECONDS = 3600.0
_MILLISECONDS = 1000


class _Spot(NamedTuple):
    """Where a letter lies; also its age, and so the order of letters, and its id."""

    at_ms: int
    partition: int
    offset: int

    @property
    def id(self) -> str:
        return f"{self.at_ms}-{self.partition}-{self.offset}"


@dataclass(frozen=True, slots=True)
class _Seen:
    key: str
    spot: _Spot
    alive: bool


class KafkaDeadLetters:
    """What was given up on one queue."""

    def __init__(
        self,
        *,
        queue: QueueOptions,
        limit: int,
        admin: Admin,
        reader: LogReader,
        producer: ConfirmedProducer,
        outbox: Outbox,
        clock: Clock,
    ) -> None:
        self._name = queue.name
        self._origin = queue.topic
        self._topic = queue.dead_topic
        self._limit = limit
        self._admin = admin
        self._reader = reader
        self._producer = producer
        self._outbox = outbox
        self._clock = clock
        self._alive: dict[str, _Spot] = {}
        self._read_to: dict[int, int] = {}
        self._looked_at = -_LOOKED_SECONDS
        self._turnstile = asyncio.Lock()
        # Letters that may be added before somebody must count again.
        self._room = 0
        self.partitions = 0

    async def add(self, record: Record, attempt: int, reason: str) -> None:
        """Put a letter behind the others, or in the place of its own from before."""
        await self._make_room()
        own = {
            REASON: reason.strip()[:MAX_REASON_CHARACTERS].encode(),
            ATTEMPT: str(attempt).encode(),
            TOPIC: self._origin.encode(),
            KEY: record.key or b"",
        }
        letter = Outgoing(
            topic=self._topic,
            key=record.name.encode(),
            value=record.raw,
            at=self._clock.time(),
            headers={**{name: text.encode() for name, text in record.headers.items()}, **own},
        )
        try:
            await self._producer.send(letter)
        except PayloadTooLargeError as error:
            _log.error(
                "dependency.unavailable",
                dependency="kafka",
                reason=f"topic {self._topic} takes no letter as large; raise its max.message.bytes",
            )
            raise unavailable(None, "takes no dead letter as large") from error

    async def list(self, *, limit: int = 100, after: str = "") -> Sequence[DeadLetter]:
        """Give up to `limit` dead letters, oldest first, behind the id `after`, even a gone one.

        Raises:
            NotFoundError: `after` is no id of this queue's.
        """
        behind = _spot(after) if after else _Spot(-1, -1, -1)
        await self._refresh()
        page = sorted(spot for spot in self._alive.values() if spot > behind)[:limit]
        return [_letter(message) for message in await self._messages(page)]

    async def show(self, letter_id: str) -> DeadLetter:
        """Give one."""
        return _letter((await self._find(letter_id))[1])

    async def redrive(self, letter_id: str) -> None:
        """Put one back at the end of its group as if never tried."""
        key, message = await self._find(letter_id)
        envelope = _envelope(message)
        if envelope is None:
            raise UndecodableError("This dead letter is no envelope; purge it")
        if isinstance(envelope.payload, ChatRequest):
            envelope = envelope.renewed(self._clock.time())
        # An id of the letter's own: past what the books remember of the turn, and the same when
        # this is done again because the letter could not be deleted.
        again = f"redrive-{self._topic}-{letter_id}"
        await self._outbox.place(envelope, encode(envelope), again)
        await self._bury(key)

    async def purge(self, letter_id: str | None = None) -> int:
        """Delete one, or all with None; give how many were deleted."""
        if letter_id is not None:
            key, _ = await self._find(letter_id)
            await self._bury(key)
            return 1
        await self._refresh()
        keys = list(self._alive)
        for key in keys:
            await self._bury(key)
        return len(keys)

    async def count(self) -> int:
        """Count them."""
        await self._refresh()
        return len(self._alive)

    async def _make_room(self) -> None:
        if self._room <= 0:
            await self._refresh()
            while len(self._alive) >= self._limit:
                key = min(self._alive, key=lambda each: self._alive[each])
                _log.warning(
                    "dead_letter.dropped",
                    queue=self._name,
                    letter_id=self._alive[key].id,
                    limit=self._limit,
                )
                await self._bury(key)
            self._room = self._limit - len(self._alive)
        self._room -= 1

    async def _bury(self, key: str) -> None:
        """Delete a letter by a tombstone, on its own partition."""
        spot = self._alive.get(key)
        if spot is None:
            return
        stone = Outgoing(
            topic=self._topic,
            key=key.encode(),
            value=None,
            at=self._clock.time(),
            partition=spot.partition,
        )
        await self._producer.send(stone)
        self._alive.pop(key, None)

    async def _refresh(self) -> None:
        """Read what was written since the last time."""
        async with self._turnstile:
            now = self._clock.monotonic()
            if now - self._looked_at >= _LOOKED_SECONDS:
                self._alive.clear()
                self._read_to.clear()
            numbers = range(self.partitions)
            ends = await self._admin.ends(self._topic, numbers)
            starts = await self._admin.starts(self._topic, numbers)
            spans = {
                number: (max(self._read_to.get(number, 0), starts[number]), ends[number])
                for number in numbers
            }
            for seen in sorted(await self._reader.read(self._topic, spans, _seen), key=_place):
                if seen.alive:
                    self._alive[seen.key] = seen.spot
                else:
                    self._alive.pop(seen.key, None)
            self._read_to.update(ends)
            self._looked_at = now
            self._forget_expired(starts)

    def _forget_expired(self, starts: Offsets) -> None:
        for key, spot in list(self._alive.items()):
            if spot.offset < starts[spot.partition]:
                del self._alive[key]

    async def _find(self, letter_id: str) -> tuple[str, Message]:
        spot = _spot(letter_id)
        await self._refresh()
        for key, found in self._alive.items():
            if found == spot:
                messages = await self._messages([spot])
                if messages:
                    return key, messages[0]
        raise _no_letter(letter_id)

    async def _messages(self, spots: Sequence[_Spot]) -> Sequence[Message]:
        """Read letters whole, in the order given."""
        wanted = {(spot.partition, spot.offset): spot for spot in spots}
        spans: dict[int, tuple[int, int]] = {}
        for spot in spots:
            first, last = spans.get(spot.partition, (spot.offset, spot.offset))
            spans[spot.partition] = (min(first, spot.offset), max(last, spot.offset + 1))

        def pick(message: Message) -> tuple[_Spot, Message] | None:
            spot = wanted.get((message.partition() or 0, message.offset() or 0))
            return None if spot is None else (spot, message)

        found = dict(await self._reader.read(self._topic, spans, pick))
        return [found[spot] for spot in spots if spot in found]


def _seen(message: Message) -> _Seen | None:
    key = message.key()
    if key is None:
        return None
    spot = _Spot(message.timestamp()[1], message.partition() or 0, message.offset() or 0)
    return _Seen(key.decode(errors="replace"), spot, message.value() is not None)


def _place(seen: _Seen) -> tuple[int, int]:
    return seen.spot.partition, seen.spot.offset


def _letter(message: Message) -> DeadLetter:
    headers = headers_of(message)
    spot = _Spot(message.timestamp()[1], message.partition() or 0, message.offset() or 0)
    attempt = headers.get(ATTEMPT, "")
    return DeadLetter(
        id=spot.id,
        reason=headers.get(REASON, ""),
        at=spot.at_ms / _MILLISECONDS,
        attempt=int(attempt) if attempt.isdigit() else 1,
        raw=message.value() or b"",
        envelope=_envelope(message),
    )


def _envelope(message: Message) -> Envelope | None:
    try:
        return decode_any(message.value() or b"", _theirs(headers_of(message)))
    except UndecodableError:
        return None


def _theirs(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in headers.items() if not name.startswith(_OWN)}


def _spot(letter_id: str) -> _Spot:
    parts = letter_id.split("-")
    if len(parts) == 3 and all(p.isascii() and p.isdigit() and len(p) < 19 for p in parts):
        return _Spot(*map(int, parts))
    raise _no_letter(letter_id)


def _no_letter(letter_id: str) -> NotFoundError:
    return NotFoundError(f"There is no dead letter {letter_id[:40]!r}")
