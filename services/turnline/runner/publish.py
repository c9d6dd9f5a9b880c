"""Putting answers on the output queue, patiently.

A full or unreachable output queue slows the agent down (its chunks wait) and never loses a
committed reply: when patience ends the delivery is handed back and the ledger replays it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from turnline.errors import PayloadTooLargeError, QueueFullError, TransportUnavailableError
from turnline.hosting import Backoff
from turnline.protocol import ChatEvent, Chunk, Envelope, Failure
from turnline.protocol.codec import encode
from turnline.protocol.deadline import within
from turnline.store import Claim, Outcome
from turnline.transport import Queue

MAX_CHUNKS_PER_ENVELOPE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to keep trying to publish.

    Attributes:
        seconds: after that the error is raised.
        send_timeout: seconds for one confirmation of the broker.
    """

    seconds: float = 30.0
    send_timeout: float = 10.0
    backoff: Backoff = Backoff(base=0.005, cap=1.0)


class Publisher:
    """Publishes to one output queue; shared by all turns of a runner."""

    def __init__(self, queue: Queue, patience: Patience | None = None) -> None:
        self._queue = queue
        self._patience = patience or Patience()

    def chunks(self, envelope: Envelope, claim: Claim) -> "ChunkPublisher":
        """Make the publisher of one attempt's chunks."""
        return ChunkPublisher(self, envelope, claim)

    async def outcome(self, envelope: Envelope, outcome: Outcome) -> None:
        """Publish a committed end; publishing it twice is harmless."""
        await self.send(_answer(envelope, outcome))

    def check_size(self, envelope: Envelope, outcome: Outcome) -> None:
        """Return if the queue can carry this end, as far as can be told before it is sent.

        Raises:
            PayloadTooLargeError: it cannot.
        """
        limit = self._queue.capabilities.max_bytes
        if limit is None or _surely_fits(outcome, limit):
            return
        if len(encode(_answer(envelope, outcome))) > limit:
            raise PayloadTooLargeError(
                f"The answer is larger than {limit} bytes", limit_bytes=limit, field="result"
            )

    async def failure(self, envelope: Envelope, failure: Failure, *, attempt: int) -> None:
        """Publish the failure of a turn that was given up and stands in no ledger."""
        await self.send(envelope.answer(attempt=attempt, payload=failure))

    async def send(self, envelope: Envelope) -> None:
        """Send until confirmed.

        Raises:
            TransportUnavailableError, QueueFullError: patience is at its end.
            PayloadTooLargeError: at once; trying again would not help.
        """
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + self._patience.seconds
        failures = 0
        while True:
            try:
                await within(self._patience.send_timeout, self._queue.send(envelope))
                return
            except TimeoutError as error:
                problem: Exception = TransportUnavailableError("the broker did not confirm")
                problem.__cause__ = error
            except (QueueFullError, TransportUnavailableError) as error:
                problem = error
            failures += 1
            pause = self._patience.backoff.pause(failures)
            if loop.time() + pause > give_up_at:
                raise problem
            await asyncio.sleep(pause)


class ChunkPublisher:
    """Numbers and publishes the events of one attempt.

    Attributes:
        count: chunks published so far; the next chunk's index.
    """

    def __init__(self, publisher: Publisher, envelope: Envelope, claim: Claim) -> None:
        self._publisher = publisher
        self._envelope = envelope
        self._claim = claim
        self.count = 0

    async def send(self, events: Sequence[ChatEvent]) -> None:
        """Publish events in order; returns when the broker has them.

        Raises:
            PayloadTooLargeError: one event alone is over what an envelope may hold.
        """
        for start in range(0, len(events), MAX_CHUNKS_PER_ENVELOPE):
            part = events[start : start + MAX_CHUNKS_PER_ENVELOPE]
            await self._send(
                [
                    Chunk(attempt=self._claim.attempt, index=self.count + offset, event=event)
                    for offset, event in enumerate(part)
                ]
            )

    async def _send(self, chunks: Sequence[Chunk]) -> None:
        """Publish chunks in one envelope, or in several when they are too large for one."""
        claim = self._claim
        try:
            await self._publisher.send(
                self._envelope.answer(attempt=claim.attempt, fence=claim.fence, chunks=chunks)
            )
        except PayloadTooLargeError as error:
            if len(chunks) == 1:
                raise PayloadTooLargeError(
                    f"A piece of the answer is larger than {error.limit_bytes} bytes",
                    limit_bytes=error.limit_bytes,
                    field="result",
                ) from error
            middle = len(chunks) // 2
            await self._send(chunks[:middle])
            await self._send(chunks[middle:])
        else:
            self.count += len(chunks)


def _answer(envelope: Envelope, outcome: Outcome) -> Envelope:
    return envelope.answer(
        attempt=outcome.attempt,
        fence=outcome.fence,
        payload=outcome.payload,
        status_code=outcome.status_code,
        chunk_count=outcome.chunk_count,
    )


def _surely_fits(outcome: Outcome, limit: int) -> bool:
    """Whether encoding it to see would be wasted: a short text (4 bytes a character at most)."""
    payload = outcome.payload
    if isinstance(payload, Failure):
        return True
    return not payload.extra and len(payload.result) * 8 < limit
