"""When to try again, and how long to wait before: within a deadline, a bounded number of times."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from turnline_client.errors import TurnlineError, closed


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how soon a call is tried again.

    Only what is safe is tried again: every try of a turn has the same `request_id`, which the
    server runs once.

    Attributes:
        max_tries: how many in a row, the first included; 1 never tries again.  A stream that moved
            on counts from the beginning.
        backoff: seconds before the second try; doubles with each further one.
        max_backoff: seconds of the longest pause of this client's own; a longer one that the server
            asks for is kept.
        jitter: gives 0.0 up to 1.0, which shortens a pause by up to half.
    """

    max_tries: int = 5
    backoff: float = 0.2
    max_backoff: float = 5.0
    jitter: Callable[[], float] = random.random

    def pause(self, failed: int, asked: float | None) -> float:
        """Give the seconds to wait after `failed` tries in a row; `asked` for by the server."""
        grown = min(self.max_backoff, self.backoff * 2.0 ** (failed - 1))
        kept = 1 - self.jitter() / 2
        # Callers who were refused together must not come back together.
        return grown * kept if asked is None else asked + min(grown, asked / 2) * kept


class Deadline:
    """When a call must be over; made and read on the loop's clock."""

    def __init__(self, seconds: float | None) -> None:
        self._at = None if seconds is None else asyncio.get_running_loop().time() + seconds

    def left(self) -> float | None:
        """Give the seconds left, never less than 0; None without a deadline."""
        if self._at is None:
            return None
        return max(0.0, self._at - asyncio.get_running_loop().time())


class Retries:
    """The tries of one call."""

    def __init__(self, policy: RetryPolicy, deadline: Deadline) -> None:
        self.deadline = deadline
        self._policy = policy
        self._failed = 0

    def moved_on(self) -> None:
        """Count from the beginning: the last try got somewhere."""
        self._failed = 0

    async def wait(self, error: TurnlineError, closing: asyncio.Event) -> None:
        """Wait until it is time to try again.

        Args:
            closing: set when the client is closed, which ends the wait.

        Raises:
            TurnlineError: `error`, if another try is not safe, not allowed or too late;
                `cancelled`, if the client was closed.
        """
        self._failed += 1
        if error.retryable and closing.is_set():
            raise closed(error.request_id)
        if not error.retryable or self._failed >= self._policy.max_tries:
            raise error
        pause = self._policy.pause(self._failed, error.retry_after)
        left = self.deadline.left()
        if left is not None and pause >= left:
            raise error
        await pause_for(pause, closing, error.request_id)


async def pause_for(seconds: float, closing: asyncio.Event, request_id: str) -> None:
    """Wait; a `TurnlineError` (`cancelled`) when the client is closed meanwhile."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await closing.wait()
        raise closed(request_id)
