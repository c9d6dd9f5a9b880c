"""Who waits for a lane, and which lanes wait for somebody; the longest waiting first."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence

from turnline.errors import TransportUnavailableError
from turnline.transport.kafka.holding import Lane

Waiting = set["asyncio.Future[Lane]"]


class Line:
    """The readers of one queue, and what is ready for them.

    Args:
        is_ready: whether the head of a lane may be handed out now.
    """

    def __init__(self, is_ready: Callable[[Lane], bool]) -> None:
        self._is_ready = is_ready
        self._ready: OrderedDict[Lane, None] = OrderedDict()
        self._waiters: OrderedDict[asyncio.Future[Lane], None] = OrderedDict()

    async def take(self, waiting: Waiting) -> Lane:
        """Wait for a lane, and take it: it is nobody else's until it is offered again.

        Args:
            waiting: where the wait is noted, for `dismiss`.
        """
        while self._ready:
            lane, _ = self._ready.popitem(last=False)
            if self._is_ready(lane):
                lane.taken = True
                return lane
        waiter: asyncio.Future[Lane] = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = None
        waiting.add(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.put_back(waiter.result())
            raise
        finally:
            waiting.discard(waiter)
            self._waiters.pop(waiter, None)

    def offer(self, lane: Lane) -> None:
        """Give a ready lane to who waits longest, or keep it for the next one."""
        if not self._is_ready(lane):
            return
        while self._waiters:
            waiter, _ = self._waiters.popitem(last=False)
            if not waiter.done():
                self._ready.pop(lane, None)
                lane.taken = True
                waiter.set_result(lane)
                return
        self._ready[lane] = None

    def put_back(self, lane: Lane) -> None:
        """Nobody took the head of a lane after all; it is the next one's."""
        lane.taken = False
        self.offer(lane)
        if lane in self._ready:
            self._ready.move_to_end(lane, last=False)

    def drop(self, lane: Lane) -> None:
        """A lane is of no use any more."""
        self._ready.pop(lane, None)

    def dismiss(self, waiters: Sequence["asyncio.Future[Lane]"] | None, why: str) -> None:
        """Let waits end with TransportUnavailableError; None: all of them."""
        for waiter in list(self._waiters if waiters is None else waiters):
            self._waiters.pop(waiter, None)
            if not waiter.done():
                waiter.set_exception(TransportUnavailableError(why))
