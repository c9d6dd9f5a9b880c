"""A deadline for a call that seldom needs one.

Most calls on a store or queue of this process never wait, and yet each must be bounded, because
another adapter's do.  A timer a call is what bounding costs; here only a call that really waits
pays it.
"""

import asyncio
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
