"""The dead letters of one queue, a stream; see `turnline.transport.DeadLetters`.

A letter lies on a subject named after the message it was, and a subject holds one letter, so that
burying a message again after a crash replaces its letter.  Its id is its sequence.
"""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import quote, unquote

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
from turnline.transport.nats.held import Held
from turnline.transport.nats.jetstream import JetStream, Stored
from turnline.transport.nats.outbox import Outbox
from turnline.transport.nats.subjects import dead_stream, subject_token
from turnline.transport.port import DeadLetter

_log = get_logger("transport")

REASON = "Turnline-Reason"
ATTEMPT = "Turnline-Attempt"
SUBJECT = "Turnline-Subject"
MAX_REASON_CHARACTERS = 500
MAX_REASON_IN_SUBJECT = 60
_READABLE = " ,.;:'!?()[]{}/=+-_@#&*<>|"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_HEADER_BYTES = 512


class NatsDeadLetters:
    """What was given up on one queue."""

    def __init__(
        self, *, name: str, stream: str, limit: int, api: JetStream, outbox: Outbox, clock: Clock
    ) -> None:
        self._name = name
        self._stream = dead_stream(stream)
        self._limit = limit
        self._api = api
        self._outbox = outbox
        self._clock = clock

    async def add(self, held: Held, reason: str) -> None:
        """Put a letter behind the others, or in the place of its own from before."""
        await self._warn_if_full()
        subject = f"{self._stream}.{held.key}"
        own = {
            REASON: quote(reason.strip()[:MAX_REASON_CHARACTERS], safe=_READABLE),
            ATTEMPT: str(held.attempt),
            SUBJECT: quote(held.subject),
        }
        try:
            await self._api.place(subject, held.raw, {**_kept(held.headers), **own})
        except PayloadTooLargeError:
            # A foreign message as large as the server takes leaves no room for headers.
            tail = subject_token(reason.strip()[:MAX_REASON_IN_SUBJECT])
            await self._api.place(f"{subject}.{held.attempt}.{tail}", held.raw)

    async def list(self, *, limit: int = 100, after: str = "") -> Sequence[DeadLetter]:
        """Give up to `limit` dead letters, oldest first, behind the id `after`, even a gone one.

        Raises:
            NotFoundError: `after` is no id of this queue's.
        """
        behind = _number(after) if after else 0
        letters: list[DeadLetter] = []
        while len(letters) < limit:
            found = await self._api.first_on(self._stream, f"{self._stream}.>", behind=behind)
            if found is None:
                break
            behind = found.sequence
            letters.append(_letter(found))
        return letters

    async def show(self, letter_id: str) -> DeadLetter:
        """Give one."""
        return _letter(await self._get(letter_id))

    async def redrive(self, letter_id: str) -> None:
        """Put one back at the end of its group as if never tried."""
        found = await self._get(letter_id)
        envelope = _envelope(found)
        if envelope is None:
            raise UndecodableError("This dead letter is no envelope; purge it")
        if isinstance(envelope.payload, ChatRequest):
            envelope = envelope.renewed(self._clock.time())
        # An id of the letter's own: past what the queue remembers of the turn, and the same when
        # this is done again because the letter could not be deleted.
        again = f"redrive-{self._stream}-{found.sequence}-{found.at}"
        await self._outbox.place(envelope, encode(envelope), again)
        await self._api.delete(self._stream, found.sequence)

    async def purge(self, letter_id: str | None = None) -> int:
        """Delete one, or all with None; give how many were deleted."""
        if letter_id is None:
            return await self._api.purge(self._stream)
        if not await self._api.delete(self._stream, (await self._get(letter_id)).sequence):
            raise _no_letter(letter_id)
        return 1

    async def count(self) -> int:
        """Count them."""
        info = await self._api.stream(self._stream)
        return int(info["state"]["messages"]) if info else 0

    async def _get(self, letter_id: str) -> Stored:
        found = await self._api.get(self._stream, _number(letter_id))
        if found is None:
            raise _no_letter(letter_id)
        return found

    async def _warn_if_full(self) -> None:
        info = await self._api.stream(self._stream)
        if info is not None and info["state"]["messages"] >= self._limit:
            _log.warning(
                "dead_letter.dropped",
                queue=self._name,
                letter_id=str(info["state"]["first_seq"]),
                limit=self._limit,
            )


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    """Give the headers of a message that its letter keeps: those that say how to read it."""
    return {
        name: value
        for name, value in headers.items()
        if _NAME.fullmatch(name)
        and not name.startswith(("Nats-", "Turnline-"))
        and value.isprintable()
        and len(value.encode()) <= _MAX_HEADER_BYTES
    }


def _letter(found: Stored) -> DeadLetter:
    reason, attempt = found.headers.get(REASON, ""), found.headers.get(ATTEMPT, "")
    if not attempt:
        *_, attempt, reason = found.subject.split(".")
        reason = unquote(reason)
    return DeadLetter(
        id=str(found.sequence),
        reason=unquote(reason),
        at=found.at,
        attempt=int(attempt) if attempt.isdigit() else 1,
        raw=found.raw,
        envelope=_envelope(found),
    )


def _envelope(found: Stored) -> Envelope | None:
    try:
        return decode_any(found.raw, found.headers)
    except UndecodableError:
        return None


def _number(letter_id: str) -> int:
    if letter_id.isascii() and letter_id.isdigit() and len(letter_id) < 19:
        return int(letter_id)
    raise _no_letter(letter_id)


def _no_letter(letter_id: str) -> NotFoundError:
    return NotFoundError(f"There is no dead letter {letter_id[:40]!r}")
