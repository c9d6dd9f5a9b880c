"""The tasks that one socket's frames cause, so many at once and none beyond the socket's life."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

Work = Callable[[], Coroutine[Any, Any, None]]


class FrameTasks:
    """Runs the work of one socket beside its reader."""

    __slots__ = ("_at_once", "_running", "_tasks")

    def __init__(self, tasks: asyncio.TaskGroup, *, at_once: int) -> None:
        """Wire it; `tasks` is the socket's own group, `at_once` how many may run."""
        self._tasks = tasks
        self._at_once = at_once
        self._running: set[asyncio.Task[None]] | None = None

    def start(self, work: Work) -> bool:
        """Run `work` in a task; False, and nothing runs, if there are too many."""
        # Made when first needed: most sockets are idle, and an empty set is 200 bytes of each.
        running = self._running = set() if self._running is None else self._running
        if len(running) >= self._at_once:
            return False
        task = self._tasks.create_task(work())
        running.add(task)
        task.add_done_callback(running.discard)
        return True

    def cancel(self) -> None:
        """Cancel all of it; for when the client has left."""
        for task in self._running or ():
            task.cancel()
