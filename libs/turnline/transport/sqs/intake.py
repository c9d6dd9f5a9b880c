"""Gets messages from SQS to waiting readers of one queue.

One long poll is open while readers wait; as long as polls find something more are opened, one for
each further reader.  A poll belongs to nobody, so a reader that gives up loses nothing; what
nobody waits for is handed back after a moment.  A poll that broke off may have taken messages: the
next one carries its name and is given them.  See ADR 0012.
"""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from turnline.errors import FencedError, TransportUnavailableError, TurnlineError
from turnline.protocol import Envelope
from turnline.protocol.clock import Clock
from turnline.transport.sqs.api import Received, SqsApi
from turnline.transport.sqs.followers import Followers
from turnline.transport.sqs.held import Held
from turnline.transport.sqs.leases import Leases
from turnline.transport.sqs.options import SqsOptions

MOST_POLLS = 16
# How long a message may lie here unwanted: readers often come back within microseconds.
SPARE_SECONDS = 0.05
_TICK_SECONDS = 0.25
_CLOSE_SECONDS = 3.0

Admitted = tuple[Held, Envelope]
_Waiter = asyncio.Future[Admitted]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Poll:
    """One receive call.

    Attributes:
        attempt_id: names it.
        most: messages it asks for.
        began: by our clock.
        again: whether it repeats one that broke off.
    """

    attempt_id: str
    most: int
    began: float
    again: bool = False


class Intake:
    """The readers of one queue on one side, its polls on the other.

    Args:
        new_id: makes names for polls, nobody else's.
    """

    def __init__(
        self,
        *,
        api: SqsApi,
        url: str,
        options: SqsOptions,
        leases: Leases,
        clock: Clock,
        new_id: Callable[[], str],
    ) -> None:
        self.admit: Callable[[Held], Awaitable[Envelope | None]] = _admit_nothing
        self._api = api
        self._url = url
        self._options = options
        self._leases = leases
        self._clock = clock
        self._new_id = new_id
        self._waiters: dict[_Waiter, None] = {}
        self._ready: deque[tuple[Admitted, float]] = deque()
        self._back: deque[Held] = deque()
        self._followers = Followers(leases)
        self._polls: dict[asyncio.Task[None], _Poll] = {}
        self._broken: deque[_Poll] = deque()
        self._width = 1
        self._looking = 0
        self._paused_until = 0.0
        self._tasks: asyncio.TaskGroup | None = None
        self._stir = asyncio.Event()
        self._open = False

    def open(self) -> None:
        """Begin to serve; run `tend` from now on."""
        self._open = True

    async def close(self) -> None:
        """Send readers away and hand back what nobody took, within a few seconds.

        Polls of readers that left before ran on until now, or to their end: a poll that is broken
        off may still take a message, which is then away for a lease.
        """
        self._open = False
        self.dismiss(list(self._waiters), "The SQS transport is closed")
        with suppress(TimeoutError, TransportUnavailableError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._break_off()
                self._let_go(math.inf)
                await self._hand_all_back()

    def check_open(self) -> None:
        """Return if open.

        Raises:
            TransportUnavailableError: it is not.
        """
        if not self._open:
            raise TransportUnavailableError("The SQS transport is not open")

    async def take(self, waiters: set[_Waiter]) -> Admitted:
        """Wait for a message that may be worked on now; it is handed out.

        Args:
            waiters: holds the wait while it lasts, for `dismiss`.

        Raises:
            TransportUnavailableError: a poll failed, or the reader was dismissed.
        """
        self.check_open()
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = None
        waiters.add(waiter)
        try:
            self._serve()
            # Those who come together are asked for together.
            asyncio.get_running_loop().call_soon(self._ask)
            held, envelope = await waiter
        except BaseException:
            self._leave(waiter)
            raise
        finally:
            waiters.discard(waiter)
        self._leases.hand_out(held)
        return held, envelope

    def dismiss(
        self, waiters: Iterable[_Waiter], reason: str, *, retry_after: float | None = None
    ) -> None:
        """Send readers away that wait."""
        for waiter in waiters:
            self._waiters.pop(waiter, None)
            if not waiter.done():
                waiter.set_exception(TransportUnavailableError(reason, retry_after=retry_after))

    def settled(self, held: Held) -> None:
        """Note that a message is gone: the next of its batch may go to a reader."""
        follower = self._followers.next(held)
        if follower is not None:
            self._look_at(follower)

    async def return_followers(self, held: Held, seconds: float) -> None:
        """Give back what came with a message and stands behind it, for more than `seconds`."""
        await self._followers.give_back(held, seconds)

    async def tend(self) -> None:
        """Look after everything that no reader does; ends when cancelled."""
        async with asyncio.TaskGroup() as self._tasks:
            self._ask()
            while True:
                await self._next_tick()
                now = self._clock.monotonic()
                self._let_go(now)
                with suppress(TransportUnavailableError):
                    await self._hand_all_back()
                    await self._followers.keep()
                self._serve()
                self._ask()

    # --- readers -----------------------------------------------------------------------------

    def _serve(self) -> None:
        """Give readers what is ready."""
        while self._ready and (waiter := self._first_waiter()) is not None:
            admitted, _ = self._ready.popleft()
            if not self._leases.is_over(admitted[0]):
                self._waiters.pop(waiter, None)
                waiter.set_result(admitted)

    def _first_waiter(self) -> _Waiter | None:
        # One that was cancelled stands here until its reader ran.
        return next((waiter for waiter in self._waiters if not waiter.done()), None)

    def _leave(self, waiter: _Waiter) -> None:
        self._waiters.pop(waiter, None)
        if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
            self._ready.appendleft((waiter.result(), self._clock.monotonic()))
            self._stir.set()
            self._serve()

    def _look_at(self, held: Held) -> None:
        if self._tasks is None or not self._open:
            self._back.append(held)
            return
        self._looking += 1
        self._tasks.create_task(self._look(held))

    async def _look(self, held: Held) -> None:
        envelope = None
        try:
            envelope = await self.admit(held)
        except FencedError:
            pass
        except TurnlineError:
            self._back.append(held)
        finally:
            self._looking -= 1
        if envelope is not None:
            self._ready.append(((held, envelope), self._clock.monotonic()))
        if not self._waiters:
            self._stir.set()
        self._serve()
        self._ask()

    # --- polls -------------------------------------------------------------------------------

    @property
    def _wanted(self) -> int:
        """Readers for whom nothing is here, being looked at or asked for."""
        asked = sum(poll.most for poll in self._polls.values())
        return len(self._waiters) - self._looking - len(self._ready) - asked

    def _ask(self) -> None:
        now = self._clock.monotonic()
        if not self._open or self._tasks is None or now < self._paused_until:
            return
        while (wanted := self._wanted) > 0 and len(self._polls) < self._width:
            poll = self._next_poll(min(wanted, self._options.batch_size), now)
            task = self._tasks.create_task(self._poll(poll))
            self._polls[task] = poll
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._polls.pop(task, None)

    def _next_poll(self, most: int, now: float) -> _Poll:
        while self._broken:
            broken = self._broken.popleft()
            if broken.most <= most and now < broken.began + self._leases.seconds * 3:
                return _Poll(attempt_id=broken.attempt_id, most=broken.most, began=now, again=True)
        return _Poll(attempt_id=self._new_id(), most=most, began=now)

    async def _poll(self, poll: _Poll) -> None:
        try:
            messages = await self._receive(poll, self._options.wait_time)
        except asyncio.CancelledError:
            self._broken.append(poll)
            raise
        except TransportUnavailableError as error:
            self._broken.append(poll)
            self._failed(error)
            return
        if (task := asyncio.current_task()) is not None:
            self._ended(task)
        self._width = min(self._width * 2, MOST_POLLS) if messages else 1
        self._arrived(messages, again=poll.again)
        self._ask()

    async def _receive(self, poll: _Poll, wait: int) -> list[Received]:
        return await self._api.receive(
            self._url,
            most=poll.most,
            wait=wait,
            visible_after=self._leases.seconds,
            attempt_id=poll.attempt_id,
        )

    def _arrived(self, messages: list[Received], *, again: bool) -> None:
        for received in messages:
            if again and received.received > 1:
                # The call that broke off took it, and nobody started anything.
                self._leases.unspent.note(received.id)
        batch = [self._leases.hold(received) for received in messages]
        for head in self._followers.sort(batch):
            self._look_at(head)

    def _failed(self, error: TransportUnavailableError) -> None:
        pause = error.retry_after or 1.0
        self._width = 1
        self._paused_until = self._clock.monotonic() + pause
        self.dismiss(list(self._waiters), error.message, retry_after=pause)

    async def _break_off(self) -> None:
        """End all polls, and hand back what they may have taken."""
        polls = list(self._polls)
        for task in polls:
            task.cancel()
        if polls:
            await asyncio.wait(polls)
        while self._broken:
            poll = self._broken.popleft()
            self._back.extend(self._leases.hold(got) for got in await self._receive(poll, 0))

    # --- what nobody wants -------------------------------------------------------------------

    async def _next_tick(self) -> None:
        tick = SPARE_SECONDS if self._ready else min(_TICK_SECONDS, self._leases.seconds / 10)
        with suppress(TimeoutError):
            async with asyncio.timeout(tick):
                await self._stir.wait()
        self._stir.clear()

    def _let_go(self, now: float) -> None:
        """Hand back what is here while nobody waits: another process may."""
        while self._ready and self._ready[0][1] < now - SPARE_SECONDS:
            self._back.append(self._ready.popleft()[0][0])

    async def _hand_all_back(self) -> None:
        while self._back:
            await self._hand_back(self._back.popleft())

    async def _hand_back(self, held: Held) -> None:
        """Give one back at once, unspent, and before it what stands behind it."""
        try:
            await self._followers.give_back(held, 0.0)
            await self._leases.give_back_unspent(held, 0.0)
        except FencedError:
            return
        except TransportUnavailableError:
            # It comes back by itself when its lease is over.
            return


async def _admit_nothing(_: Held) -> Envelope | None:
    raise AssertionError("the queue says how to admit")
