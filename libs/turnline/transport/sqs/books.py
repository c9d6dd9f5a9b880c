"""What SQS does not remember of one queue, kept where the sessions are, if other processes see it.

One session's share, copies that another process sent, and how many deliveries began an attempt.
SQS works without: where there are no books, or they do not answer at once, this process's own
memory and SQS's counts have to do (ADR 0012).
"""

from collections.abc import Coroutine
from typing import Any, TypeVar

from turnline.errors import StoreUnavailableError
from turnline.protocol.clock import Clock
from turnline.protocol.deadline import within
from turnline.telemetry import get_logger
from turnline.transport.port import Admission, Bookkeeping

_log = get_logger("transport")

_T = TypeVar("_T")

# SQS's own place of a message says nothing; the port wants one of what was sent.
_SENT = (0, 0)
# The queue's room is SQS's to tell.
_ANY_NUMBER = 1_000_000_000
_ANSWER_SECONDS = 1.0
# A delivery waits under its lease meanwhile.
_ANSWER_SHARE_OF_LEASE = 1 / 8
# So that an outage costs a wait now and then, not one for every call.
_REST_SECONDS = 5.0


class Books:
    """The books of one queue; no method raises, and without books none does anything.

    Args:
        shared: None: there are none.
        queue: its URL.
        max_per_group: one session's share; 0: no limit.
        window: seconds in which a copy of an id is one.
        patience: seconds until an id counts as free again whose sender said nothing more.
    """

    def __init__(
        self,
        shared: Bookkeeping | None,
        *,
        queue: str,
        max_per_group: int,
        window: float,
        patience: float,
        lease_seconds: float,
        clock: Clock,
    ) -> None:
        self._shared = shared
        self._queue = queue
        self._max_per_group = max_per_group
        self._window = window
        self._patience = patience
        self._answer_seconds = min(_ANSWER_SECONDS, lease_seconds * _ANSWER_SHARE_OF_LEASE)
        self._clock = clock
        self._rests_until = 0.0

    @property
    def kept(self) -> bool:
        """Whether there are books."""
        return self._shared is not None

    async def admit(self, dedup_id: str, group: str) -> Admission:
        """Take in what is about to be sent."""
        if self._shared is None:
            return "taken"
        verdict = await self._ask(
            self._shared.admit(
                self._queue,
                dedup_id,
                group,
                patience=self._patience,
                max_messages=_ANY_NUMBER,
                max_per_group=self._max_per_group,
            )
        )
        return verdict or "taken"

    async def sent(self, dedup_id: str, group: str, *, taken: bool) -> None:
        """Say what became of what was admitted."""
        if self._shared is not None:
            place = _SENT if taken else None
            await self._ask(
                self._shared.sent(self._queue, dedup_id, group, window=self._window, place=place)
            )

    async def begin(self, message_id: str) -> int:
        """Count a delivery that is about to be made; give which one it is, 0: nobody knows."""
        if self._shared is None:
            return 0
        count = await self._ask(
            self._shared.begin(self._queue, message_id, "", sent_at=0.0, window=0.0)
        )
        return count or 0

    async def unspend(self, message_id: str) -> None:
        """Take back what `begin` counted last."""
        if self._shared is not None:
            await self._ask(self._shared.unspend(self._queue, message_id))

    async def finish(self, message_id: str, dedup_id: str, group: str) -> None:
        """Forget a message that is gone; what is left of it otherwise runs out by itself."""
        if self._shared is not None:
            await self._ask(
                self._shared.finish(self._queue, message_id, dedup_id, group, window=self._window)
            )

    async def _ask(self, call: Coroutine[Any, Any, _T]) -> _T | None:
        """Await an answer for a moment; None: the books are away."""
        if self._clock.monotonic() < self._rests_until:
            call.close()
            return None
        try:
            return await within(self._answer_seconds, call)
        except (StoreUnavailableError, TimeoutError) as error:
            self._rests_until = self._clock.monotonic() + _REST_SECONDS
            _log.warning(
                "dependency.unavailable", dependency="bookkeeping", reason=type(error).__name__
            )
            return None
