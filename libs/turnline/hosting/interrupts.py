"""Stopping a block of code for a reason: cancellation that turns back into an error.

`asyncio.timeout` does this for time; here the reason can be a lost lease, a caller's cancel or a
drain whose grace is over.  Outer cancellation passes through untouched.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

from turnline.errors import TurnlineError
from turnline.telemetry import get_logger

_log = get_logger("hosting")

Work = Callable[[], Coroutine[Any, Any, None]]

# The loop keeps only weak references to tasks; without this one the collector could end them.
_LEFT_BEHIND: set[asyncio.Task[None]] = set()


class Interruptible:
    """An async context manager whose block can be stopped from outside with an error.

    The first `interrupt` wins; after the block was left it does nothing.
    """

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._error: TurnlineError | None = None

    def interrupt(self, error: TurnlineError) -> None:
        """Cancel the block's task; the block then raises `error`."""
        if self._task is not None and self._error is None:
            self._error = error
            self._task.cancel()

    async def __aenter__(self) -> Self:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("an Interruptible needs a running task")
        self._task, self._cancelling = task, task.cancelling()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        task, self._task = self._task, None
        if self._error is None or task is None:
            return
        if kind is None:
            # The cancel was asked for after the block's last await: let it arrive here.
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                kind = asyncio.CancelledError
        if task.uncancel() <= self._cancelling and (
            kind is None or issubclass(kind, asyncio.CancelledError)
        ):
            raise self._error from None


class alongside:
    """Run `work` beside an `async with` block and cancel it when the block is left.

    An error of `work` is logged and does not disturb the block: use it for watchers, whose loss
    costs promptness and never correctness.
    """

    def __init__(self, work: Work, *, after: float = 0.0) -> None:
        """Wire it.

        Args:
            work: makes the coroutine to run.
            after: seconds to wait before it starts, so that a block which ends sooner costs no
                task.
        """
        self._work = work
        self._after = after
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> None:
        if self._after > 0:
            self._timer = asyncio.get_running_loop().call_later(self._after, self._start)
        else:
            self._start()

    async def __aexit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait([self._task])
        if not self._task.cancelled() and (error := self._task.exception()) is not None:
            _log.warning("watcher.failed", exc_info=error)

    def _start(self) -> None:
        self._task = asyncio.create_task(self._work())


class LeftBehind:
    """A task run by `leave_behind`.

    Attributes:
        stuck: it did not stop when cancelled and was left behind.
    """

    def __init__(self) -> None:
        self.stuck = False


@asynccontextmanager
async def leave_behind(
    work: Coroutine[Any, Any, None], *, after: float
) -> AsyncIterator[LeftBehind]:
    """Run `work` in a task of its own for the length of the block.

    Leaving the block cancels it and waits `after` seconds for it to stop; if it does not, it is
    left behind: it keeps its memory until it ends, and nobody waits for it.  Cancelling the wait
    leaves it behind at once.  For code that is not ours and may ignore cancellation.
    """
    task = asyncio.create_task(work)
    state = LeftBehind()
    try:
        yield state
    finally:
        if not task.done():
            task.cancel()
            try:
                await asyncio.wait([task], timeout=after)
            finally:
                if not task.done():
                    state.stuck = True
                    _LEFT_BEHIND.add(task)
                    task.add_done_callback(_LEFT_BEHIND.discard)
