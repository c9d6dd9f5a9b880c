"""A thread of one's own for calls that block, awaited in the loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from turnline.errors import TransportUnavailableError

_T = TypeVar("_T")


class OwnThread:
    """One thread, so that calls that hang take none of others'; calls wait in line."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._pool: ThreadPoolExecutor | None = None

    def open(self) -> None:
        """Begin to serve."""
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=self._name)

    def close(self, last: Callable[[], None] | None = None) -> None:
        """End, with nobody waiting; no-op if it is closed already.

        Args:
            last: called after those that wait in line; without it these are not called any more.
        """
        pool, self._pool = self._pool, None
        if pool is not None:
            if last is not None:
                pool.submit(last)
            pool.shutdown(wait=False, cancel_futures=last is None)

    async def call(self, call: Callable[[], _T]) -> _T:
        """Call there; a cancelled wait leaves a call running that had begun.

        Raises:
            TransportUnavailableError: it is closed.
        """
        if self._pool is None:
            raise TransportUnavailableError("The transport is closed")
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)
