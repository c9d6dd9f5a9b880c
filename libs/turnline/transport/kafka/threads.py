"""Calls in a thread of one's own, awaited in the loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_T = TypeVar("_T")


async def call_in(thread: ThreadPoolExecutor, call: Callable[[], _T]) -> _T:
    """Call in that thread; a cancelled wait leaves the call running."""
    return await asyncio.get_running_loop().run_in_executor(thread, call)
