"""Work that its caller may stop waiting for: it goes on, and its end is there for the next one.

One per transport, in the transport's TaskGroup.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from turnline.errors import TransportUnavailableError, TurnlineError

_T = TypeVar("_T")


class Background:
    """Starts work and gives its future; await that under `asyncio.shield`."""

    def __init__(self) -> None:
        self._tasks: asyncio.TaskGroup | None = None
        self._working: set[asyncio.Task[None]] = set()

    def open(self, tasks: asyncio.TaskGroup) -> None:
        """Begin to take work."""
        self._tasks = tasks

    async def close(self, seconds: float) -> None:
        """Take no more, let what runs end within `seconds`, and cancel the rest."""
        self._tasks = None
        if self._working:
            _, late = await asyncio.wait(self._working, timeout=seconds)
            for task in late:
                task.cancel()

    def start(self, work: Coroutine[Any, Any, _T]) -> "asyncio.Future[_T]":
        """Start it; errors of ours come out of the future, all others end the transport."""
        future: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_read_by_nobody)
        if self._tasks is None:
            work.close()
            future.set_exception(TransportUnavailableError("The transport is closed"))
            return future
        task = self._tasks.create_task(_run(work, future))
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        return future


async def _run(work: Coroutine[Any, Any, _T], future: "asyncio.Future[_T]") -> None:
    try:
        result = await work
    except TurnlineError as error:
        if not future.done():
            future.set_exception(error)
    except BaseException:
        if not future.done():
            future.set_exception(TransportUnavailableError("The transport is closed"))
        raise
    else:
        if not future.done():
            future.set_result(result)


def _read_by_nobody(future: "asyncio.Future[Any]") -> None:
    """Take note of a failure, or the loop complains that none did."""
    if not future.cancelled():
        future.exception()
