"""The dead letters of one queue, a FIFO queue; see `turnline.transport.DeadLetters`.

SQS shows a message only to who takes it.  So each look takes all letters, hides them for half a
minute, and gives back what is to stay, the last first.  Two people who look at once each see a
part; letters that SQS moved here by itself keep their group, of which ten are seen at a time.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

from turnline.errors import (
    FencedError,
    NotFoundError,
    TransportUnavailableError,
    UndecodableError,
)
from turnline.protocol import ChatRequest, digest
from turnline.protocol.clock import Clock
from turnline.telemetry import get_logger
from turnline.transport.background import Background
from turnline.transport.port import DeadLetter
from turnline.transport.sqs.api import SqsApi
from turnline.transport.sqs.facts import QueueFacts
from turnline.transport.sqs.held import Held
from turnline.transport.sqs.letters import Letter, letter_message, letter_of, place_of
from turnline.transport.sqs.options import MOST_IN_BATCH
from turnline.transport.sqs.outbox import Outbox

_log = get_logger("transport")

_T = TypeVar("_T")
# Within the class `list` is a method.
Letters = list[Letter]

LOOK_SECONDS = 30
# Letters one look takes at most: what can be taken and given back within the half minute.
MOST_IN_LOOK = 2_000


class SqsDeadLetters:
    """What was given up on one queue.

    Attributes:
        facts: where they lie; set when the transport opens.
    """

    def __init__(
        self,
        *,
        name: str,
        limit: int,
        api: SqsApi,
        outbox: Outbox,
        background: Background,
        clock: Clock,
    ) -> None:
        self.facts = QueueFacts(dead_url="")
        self._name = name
        self._limit = limit
        self._api = api
        self._outbox = outbox
        self._background = background
        self._clock = clock
        self._looking = asyncio.Lock()

    async def add(self, held: Held, reason: str) -> None:
        """Put a letter behind the others."""
        await self._make_room()
        message = letter_message(held, reason, largest=self.facts.largest)
        await self._api.send(self._url, message)

    async def list(self, *, limit: int = 100, after: str = "") -> Sequence[DeadLetter]:
        """Give up to `limit` dead letters, oldest first, behind the id `after`, even a gone one.

        Raises:
            NotFoundError: `after` is no id of a letter.
        """
        behind = (place_of(after) or _no_letter(after)) if after else (0, 0, "")
        letters = await self._in_one_go(self._look())
        return [x.shown for x in letters if _place(x) > behind][:limit]

    async def show(self, letter_id: str) -> DeadLetter:
        """Give one."""
        letters = await self._in_one_go(self._look())
        found = [letter.shown for letter in letters if letter.shown.id == letter_id]
        return found[0] if found else _no_letter(letter_id)

    async def redrive(self, letter_id: str) -> None:
        """Put one back at the end of its group as if never tried."""
        await self._in_one_go(self._redrive(letter_id))

    async def purge(self, letter_id: str | None = None) -> int:
        """Delete one, or all with None; give how many were deleted."""
        return await self._in_one_go(
            self._purge_all() if letter_id is None else self._purge_one(letter_id)
        )

    async def count(self) -> int:
        """Count them, as SQS estimates."""
        return sum(await self._api.counts(self._url))

    @property
    def _url(self) -> str:
        if not self.facts.dead_url:
            raise TransportUnavailableError("The SQS transport is not open")
        return self.facts.dead_url

    async def _in_one_go(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Go on though the caller leaves: what a look took must go back."""
        return await asyncio.shield(self._background.start(work))

    async def _look(self) -> Letters:
        async with self._looking:
            letters = await self._take()
            await self._give_back(letters)
            return letters

    async def _redrive(self, letter_id: str) -> None:
        async with self._looking:
            letter = await self._take_one(letter_id)
            try:
                await self._send_again(letter)
            except BaseException:
                await self._give_back([letter])
                raise
            await self._delete([letter])

    async def _send_again(self, letter: Letter) -> None:
        envelope = letter.shown.envelope
        if envelope is None:
            raise UndecodableError("This dead letter is no envelope; purge it")
        if isinstance(envelope.payload, ChatRequest):
            envelope = envelope.renewed(self._clock.time())
        # An id of the letter's own: past what SQS remembers of the turn, and the same when this
        # is done again because the letter could not be deleted.
        again = digest("redrive", self._url, letter.shown.id)
        await self._outbox.send(envelope, dedup_id=again)

    async def _purge_one(self, letter_id: str) -> int:
        async with self._looking:
            await self._delete([await self._take_one(letter_id)])
            return 1

    async def _purge_all(self) -> int:
        """Take and delete until nothing comes; SQS's own purge neither counts nor happens twice."""
        deleted = 0
        async with self._looking:
            while letters := await self._take():
                await self._delete(letters)
                deleted += len(letters)
        return deleted

    async def _take_one(self, letter_id: str) -> Letter:
        """Take one and give back all others."""
        letters = await self._take()
        found = [letter for letter in letters if letter.shown.id == letter_id]
        await self._give_back([letter for letter in letters if letter.shown.id != letter_id])
        return found[0] if found else _no_letter(letter_id)

    async def _take(self) -> Letters:
        """Take all letters there are, oldest first."""
        letters: dict[str, Letter] = {}
        try:
            while len(letters) < MOST_IN_LOOK:
                waiting, _ = await self._api.counts(self._url)
                # An answer without a wait may miss what is there.
                found = await self._receive(MOST_IN_BATCH, wait=1 if waiting else 0)
                if not found:
                    break
                letters.update((letter.shown.id, letter) for letter in found)
        except BaseException:
            await self._give_back(list(letters.values()))
            raise
        return sorted(letters.values(), key=_place)

    async def _receive(self, most: int, *, wait: int) -> Letters:
        received = await self._api.receive(
            self._url,
            most=most,
            wait=wait,
            visible_after=LOOK_SECONDS,
            attempt_id=digest("look", str(self._clock.time()), str(self._clock.monotonic())),
        )
        return [letter_of(message) for message in received]

    async def _give_back(self, letters: Letters) -> None:
        """Show letters again, the last first; what fails shows itself after half a minute."""
        backwards = [(letter.receipt, 0) for letter in reversed(letters)]
        for start in range(0, len(backwards), MOST_IN_BATCH):
            with suppress(TransportUnavailableError, FencedError):
                await self._api.hide(self._url, backwards[start : start + MOST_IN_BATCH])

    async def _delete(self, letters: Letters) -> None:
        receipts = [letter.receipt for letter in letters]
        for start in range(0, len(receipts), MOST_IN_BATCH):
            for end in await self._api.delete(self._url, receipts[start : start + MOST_IN_BATCH]):
                if end is not None:
                    raise end

    async def _make_room(self) -> None:
        """Let the oldest give way where there are too many; of ten, as SQS shows no more."""
        if await self.count() < self._limit:
            return
        async with self._looking:
            letters = sorted(await self._receive(MOST_IN_BATCH, wait=0), key=_place)
            if not letters:
                return
            await self._give_back(letters[1:])
            await self._delete(letters[:1])
        _log.warning(
            "dead_letter.dropped",
            queue=self._name,
            letter_id=letters[0].shown.id,
            limit=self._limit,
        )


def _place(letter: Letter) -> tuple[int, int, str]:
    return place_of(letter.shown.id) or (0, 0, "")


def _no_letter(letter_id: str) -> NoReturn:
    raise NotFoundError(f"There is no dead letter {letter_id[:60]!r}")
