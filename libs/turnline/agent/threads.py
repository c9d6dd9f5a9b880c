"""Threads for agents that are plain functions: few, counted, and never trusted to end.

A thread cannot be stopped from outside.  One that goes on after its turn was stopped is counted as
stuck and keeps its place until it ends; when only stuck threads are left, further turns are
refused at once instead of queueing behind work that may never finish.  Threads are daemons, so a
stuck one does not keep the process from exiting.
"""

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from functools import partial
from typing import Generic, TypeVar

from turnline.agent.port import RetryableAgentError

DEFAULT_MAX_THREADS = 32
MAX_UNREAD_ITEMS = 64

T = TypeVar("T")


class BoundedThreads:
    """Runs blocking iterators in at most `max_threads` threads.

    Safe to use from several event loops.  A turn that finds all threads busy waits, first come
    first served, as long as its own deadline lets it.

    Args:
        max_threads: 1 or more.
        stop_seconds: how long a stopped turn waits for its thread before it counts it as stuck.
    """

    def __init__(
        self, max_threads: int = DEFAULT_MAX_THREADS, *, stop_seconds: float = 2.0
    ) -> None:
        self._lock = threading.Lock()
        self._max = 0
        self._busy = 0
        self._stuck = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._stop_seconds = stop_seconds
        self.resize(max_threads)

    @property
    def max_threads(self) -> int:
        """The bound."""
        return self._max

    @property
    def busy(self) -> int:
        """Threads that run now, stuck ones included."""
        return self._busy

    @property
    def stuck(self) -> int:
        """Threads that run on although their turn was stopped."""
        return self._stuck

    def resize(self, max_threads: int) -> None:
        """Set the bound for turns to come; running ones go on.

        Raises:
            ValueError: less than 1.
        """
        if max_threads < 1:
            raise ValueError(f"max_threads must be 1 or more, is {max_threads}")
        with self._lock:
            self._max = max_threads
            free = max(0, self._max - self._busy)
            granted = [self._waiting.popleft() for _ in range(min(free, len(self._waiting)))]
            self._busy += len(granted)
        for waiter in granted:
            self._hand_over(waiter)

    async def iterate(
        self, make: Callable[[], Iterator[T]], *, on_stop: Callable[[], None] = lambda: None
    ) -> AsyncGenerator[T, None]:
        """Run `make()` and its iterator in a thread, giving items as they come.

        The thread waits while `MAX_UNREAD_ITEMS` items are unread.  It sees the caller's context
        variables.  Closing or cancelling this generator calls `on_stop`, closes the iterator at
        its next item, and waits `stop_seconds` for that.

        Raises:
            RetryableAgentError: all threads are stuck, or the system gives no more threads.
            Exception: whatever the iterator raised.
        """
        await self._place()
        bridge: _Bridge[T] = _Bridge(asyncio.get_running_loop())
        self._start(make, bridge)
        try:
            async with aclosing(bridge.items()) as items:
                async for item in items:
                    yield item
        finally:
            if not bridge.ended.is_set():
                on_stop()
                bridge.close()
                await self._wait_stopped(bridge)

    async def _place(self) -> None:
        """Take a place for one thread, waiting for it if need be."""
        with self._lock:
            if self._stuck >= self._max:
                raise self._all_stuck()
            if self._busy < self._max:
                self._busy += 1
                return
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            with self._lock:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)
            if not waiter.cancelled() and waiter.exception() is None:
                self._release()  # the place was granted just before the cancel
            raise

    def _all_stuck(self) -> RetryableAgentError:
        return RetryableAgentError(
            f"all {self._max} agent threads are stuck in turns that were stopped"
        )

    def _start(self, make: Callable[[], Iterator[T]], bridge: "_Bridge[T]") -> None:
        context = contextvars.copy_context()
        thread = threading.Thread(
            target=context.run, args=(self._work, make, bridge), name="turnline-agent", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:
            self._release()
            raise RetryableAgentError("the system gives no more threads") from error

    def _work(self, make: Callable[[], Iterator[T]], bridge: "_Bridge[T]") -> None:
        """Body of a thread."""
        error: Exception | None = None
        try:
            items = make()
            try:
                for item in items:
                    if not bridge.put(item):
                        break
            finally:
                if (close := getattr(items, "close", None)) is not None:
                    close()
        except Exception as raised:  # noqa: BLE001 - raised again where the turn is awaited
            error = raised
        except BaseException as raised:  # noqa: BLE001 - must not end the process
            error = RuntimeError(f"the agent's thread ended with {type(raised).__name__}")
            error.__cause__ = raised
        finally:
            with self._lock:
                bridge.thread_ended = True
                if bridge.counted_stuck:
                    self._stuck -= 1
            self._release()
            bridge.end(error)

    def _release(self) -> None:
        """Give a place back: to the first waiter, or to nobody."""
        with self._lock:
            waiter = self._waiting.popleft() if self._waiting and self._busy <= self._max else None
            if waiter is None:
                self._busy -= 1
        if waiter is not None:
            self._hand_over(waiter)

    def _hand_over(self, waiter: asyncio.Future[None]) -> None:
        if not _call_on(waiter.get_loop(), lambda: self._grant(waiter)):
            self._release()

    def _grant(self, waiter: asyncio.Future[None]) -> None:
        if waiter.done():
            self._release()
        else:
            waiter.set_result(None)

    async def _wait_stopped(self, bridge: "_Bridge[T]") -> None:
        try:
            async with asyncio.timeout(self._stop_seconds):
                await bridge.ended.wait()
        except TimeoutError:
            pass
        finally:
            self._count_stuck(bridge)

    def _count_stuck(self, bridge: "_Bridge[T]") -> None:
        with self._lock:
            if bridge.thread_ended or bridge.counted_stuck:
                return
            bridge.counted_stuck = True
            self._stuck += 1
            refused = list(self._waiting) if self._stuck >= self._max else []
            if refused:
                self._waiting.clear()
        for waiter in refused:
            _call_on(waiter.get_loop(), partial(self._refuse, waiter))

    def _refuse(self, waiter: asyncio.Future[None]) -> None:
        if not waiter.done():
            waiter.set_exception(self._all_stuck())


class _Bridge(Generic[T]):
    """Carries items from one thread to one event loop, a bounded number at a time.

    Attributes:
        ended: set on the loop once the thread's iterator is finished and closed.
        thread_ended / counted_stuck: kept by BoundedThreads, under its lock.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.ended = asyncio.Event()
        self.thread_ended = False
        self.counted_stuck = False
        self._loop = loop
        self._room = threading.Semaphore(MAX_UNREAD_ITEMS)
        self._unread: deque[T] = deque()
        self._readable = asyncio.Event()
        self._closed = False
        self._error: Exception | None = None

    def put(self, item: T) -> bool:
        """Hand an item over from the thread, waiting for room; False when nobody reads any more."""
        self._room.acquire()
        return not self._closed and _call_on(self._loop, lambda: self._arrived(item))

    def end(self, error: Exception | None) -> None:
        """Say from the thread that no more items come."""
        _call_on(self._loop, lambda: self._finished(error))

    def close(self) -> None:
        """Say from the loop that nobody reads any more."""
        self._closed = True
        self._room.release()

    async def items(self) -> AsyncGenerator[T, None]:
        """Give the items, then raise what the thread raised."""
        while True:
            await self._readable.wait()
            self._readable.clear()
            while self._unread:
                item = self._unread.popleft()
                self._room.release()
                yield item
            if self.ended.is_set():
                break
        if self._error is not None:
            raise self._error

    def _arrived(self, item: T) -> None:
        self._unread.append(item)
        self._readable.set()

    def _finished(self, error: Exception | None) -> None:
        self._error = error
        self.ended.set()
        self._readable.set()


def _call_on(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> bool:
    """Have a loop call `callback` soon; False when the loop is closed."""
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        return False
    return True
