"""Calls that many make at once, sent together: up to ten entries cost what one does.

An entry that is put while calls are under way goes with the next one; nothing waits longer than
`linger` for company.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from turnline.errors import TransportUnavailableError, TurnlineError
from turnline.transport.background import Background
from turnline.transport.sqs.options import MOST_IN_BATCH

EntryT = TypeVar("EntryT")
Send = Callable[[Sequence[EntryT]], Awaitable[Sequence[TurnlineError | None]]]

_MOST_CALLS = 16


class Batches(Generic[EntryT]):
    """Entries of one kind, for one queue.

    Args:
        send: sends up to ten; gives what went wrong with each, or None.
        linger: seconds to wait for more entries before a call.
    """

    def __init__(self, send: Send[EntryT], background: Background, *, linger: float = 0.0) -> None:
        self._send = send
        self._background = background
        self._linger = linger
        self._pending: deque[tuple[EntryT, asyncio.Future[None]]] = deque()
        self._calls = 0
        self._gathering = False

    async def put(self, entry: EntryT) -> None:
        """Return when it is done; a cancelled caller's entry is sent all the same.

        Raises:
            TurnlineError: what went wrong with this one.
        """
        end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending.append((entry, end))
        self._pump()
        await end

    def _pump(self) -> None:
        if not self._gathering and self._pending and self._calls < _MOST_CALLS:
            self._gathering = True
            self._calls += 1
            self._background.start(self._run()).add_done_callback(self._ran)

    def _ran(self, call: "asyncio.Future[None]") -> None:
        self._calls -= 1
        if not call.cancelled() and call.exception() is not None:
            # Closed before it began: nobody sends what is pending.
            self._gathering = False
            self._fail(list(self._pending), TransportUnavailableError("The transport is closed"))
            self._pending.clear()
        self._pump()

    async def _run(self) -> None:
        batch: list[tuple[EntryT, asyncio.Future[None]]] = []
        try:
            await asyncio.sleep(self._linger)
            while self._pending and len(batch) < MOST_IN_BATCH:
                batch.append(self._pending.popleft())
            self._gathering = False
            self._pump()
            ends = await self._send([entry for entry, _ in batch])
        except TurnlineError as error:
            self._fail(batch, error)
        except BaseException:
            self._gathering = False
            self._fail(batch, TransportUnavailableError("The transport is closed"))
            raise
        else:
            for (_, end), problem in zip(batch, ends, strict=True):
                _settle(end, problem)

    def _fail(
        self, batch: Sequence[tuple[EntryT, "asyncio.Future[None]"]], error: TurnlineError
    ) -> None:
        for _, end in batch:
            _settle(end, error)


def _settle(end: "asyncio.Future[None]", problem: TurnlineError | None) -> None:
    if end.done():
        return
    if problem is None:
        end.set_result(None)
    else:
        end.set_exception(problem)
