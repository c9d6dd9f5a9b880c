"""Deadlines for calls that seldom need one, at less than a timer a call.

Most calls on a store or queue of this process never wait, and yet each must be bounded, because
another adapter's do: with `within` only a call that really waits pays for a timer.  Calls on a
server all wait, and all for as long at most: one timer serves them, a `TimeLimit`.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")


@coroutine
def within(seconds: float, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    """Await `work` for at most `seconds`, as inside an `asyncio.timeout`.

    The seconds count from the first time `work` waits; until then it cannot be cut off.

    Raises:
        TimeoutError: it took longer; `work` was cancelled and has ended.
    """
    try:
        waited_for = work.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    return (yield from _bounded(seconds, work, waited_for).__await__())


async def _bounded(seconds: float, work: Coroutine[Any, Any, T], waited_for: object) -> T:
    async with asyncio.timeout(seconds):
        return await _go_on(work, waited_for)


@coroutine
def _go_on(work: Coroutine[Any, Any, T], waited_for: object) -> Generator[Any, Any, T]:
    """Await a coroutine that waits already: `yield from` (PEP 380), entered at its first yield."""
    try:
        while True:
            try:
                sent = yield waited_for
            except GeneratorExit:
                work.close()
                raise
            except BaseException as error:  # handed to `work`, which decides  # noqa: BLE001
                waited_for = work.throw(error)
            else:
                waited_for = work.send(sent)
    except StopIteration as ended:
        result: T = ended.value
        return result


class TimeLimit:
    """Bounds any number of futures by the same time, each from when it was added.

    They fall due in the order they came, so one timer, for the oldest, is enough.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._oldest_first: deque[tuple[float, asyncio.Future[Any]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, future: "asyncio.Future[Any]") -> None:
        """End `future` with a TimeoutError unless it is done in time."""
        loop = future.get_loop()
        self._forget_done()
        self._oldest_first.append((loop.time() + self._seconds, future))
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._end_late, loop)

    def _end_late(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        self._forget_done()
        while self._oldest_first and self._oldest_first[0][0] <= loop.time():
            self._oldest_first.popleft()[1].set_exception(TimeoutError())
            self._forget_done()
        if self._oldest_first:
            self._timer = loop.call_at(self._oldest_first[0][0], self._end_late, loop)

    def _forget_done(self) -> None:
        """Drop the oldest as far as they are done: what they hold may be large."""
        while self._oldest_first and self._oldest_first[0][1].done():
            self._oldest_first.popleft()
