"""Whoever waits for an answer in this process, so that all can be let go when none will come."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

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

    @property
    def closed(self) -> bool:
        """Whether everybody was let go."""
        return self._closed

    async def close(self) -> None:
        """Let everybody go, and nobody wait from here on: no further answer will come."""
        self._closed = True
        for _ in range(_PASSES):
            await asyncio.sleep(0)
        for call in list(self._calls):
            call()

    def enter(self, call: Callable[[], None]) -> None:
        """Have `call` called when the room closes; at once if it is closed.  Undo with `leave`."""
        if self._closed:
            call()
        self._calls.add(call)

    def leave(self, call: Callable[[], None]) -> None:
        """Be told no more."""
        self._calls.discard(call)

    @contextmanager
    def told(self, call: Callable[[], None]) -> Iterator[None]:
        """Enter for the length of a block."""
        self.enter(call)
        try:
            yield
        finally:
            self.leave(call)

    def seat(self) -> "Seat":
        """Wait inside an `async with` block.

        Raises:
            DrainingError: from the block, when the room closed or is closed.
        """
        if self._closed:
            raise DrainingError
        return Seat(self)


class Seat(Interruptible):
    """A place to wait in until the room closes; made by `WaitingRoom.seat`."""

    def __init__(self, room: WaitingRoom) -> None:
        super().__init__()
        self._room = room

    async def __aenter__(self) -> Self:
        self._room.enter(self._stand_up)
        return await super().__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._room.leave(self._stand_up)
        await super().__aexit__(kind, error, traceback)

    def _stand_up(self) -> None:
        self.interrupt(DrainingError())
