"""Whoever waits for an answer in this process, so that all can be let go when none will come."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from turnline.errors import DrainingError
from turnline.hosting import Interruptible

# Passes over the loop's ready queue: an answer that is here already reaches its waiter first.
_PASSES = 20


class WaitingRoom:
    """Lets every waiter of a process go at once; one per process."""

    def __init__(self) -> None:
        self._closed = False
        self._calls: set[Callable[[], None]] = set()

    @property
    def waiting(self) -> int:
        """How many wait now."""
        return len(self._calls)

    async def close(self) -> None:
        """Let everybody go, and nobody wait from here on: no further answer will come."""
        self._closed = True
        for _ in range(_PASSES):
            await asyncio.sleep(0)
        for call in list(self._calls):
            call()

    @contextmanager
    def told(self, call: Callable[[], None]) -> Iterator[None]:
        """Have `call` called if the room closes within the block; at once if it is closed."""
        if self._closed:
            call()
        self._calls.add(call)
        try:
            yield
        finally:
            self._calls.discard(call)

    @asynccontextmanager
    async def seat(self) -> AsyncIterator[None]:
        """Wait inside the block.

        Raises:
            DrainingError: the room closed, or is closed.
        """
        if self._closed:
            raise DrainingError
        block = Interruptible()
        with self.told(_interrupt(block)):
            async with block:
                yield


def _interrupt(block: Interruptible) -> Callable[[], None]:
    return lambda: block.interrupt(DrainingError())
