"""Gets messages from the server to waiting readers of one queue, one per reader.

What arrives is looked at in a task of its own, so that a reader that gives up loses nothing and
undoes nothing; readers are given what may be worked on now.  What nobody waits for is handed back
unspent after a moment.  `tend` runs beside it all: it hands back, keeps parked messages, and makes
pulls anew.
"""

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress

from nats.aio.msg import Msg

from turnline.errors import FencedError, TransportUnavailableError, TurnlineError
from turnline.protocol import Envelope
from turnline.protocol.clock import Clock
from turnline.transport.nats.client import unavailable
from turnline.transport.nats.connection import Connection, Ear
from turnline.transport.nats.credits import Credits
from turnline.transport.nats.held import Held, held_of
from turnline.transport.nats.lanes import Lanes
from turnline.transport.nats.leases import Leases
from turnline.transport.nats.pulls import Pulls
from turnline.transport.nats.subjects import settled_subject

PULL_SECONDS = 3.0
PULL_OF_MANY_SECONDS = 1.0
MAX_PARKED = 1_000
LOOK_AGAIN_SECONDS = 2.0
# How long a message may be parked before it is written down that this spends no attempt: most are
# parked for far less, and a write each would cost more than their delivery.
CREDIT_AFTER_SECONDS = 0.2
# How long a message may lie here unwanted: readers often come back within microseconds.
SPARE_SECONDS = 0.05
# How long this process may have no waiting reader before what it parked goes back.
DUE_UNWANTED_SECONDS = 0.1
UNWANTED_SECONDS = 1.0
_TICK_SECONDS = 0.25
_AT_ONCE = 32
_CLOSE_SECONDS = 3.0

Admitted = tuple[Held, Envelope]
_Waiter = asyncio.Future[Admitted]


class Intake:
    """The readers of one queue on one side, its consumers on the other."""

    def __init__(
        self,
        *,
        connection: Connection,
        credits: Credits,
        leases: Leases,
        stream: str,
        consumers: tuple[str, ...],
        request_timeout: float,
        clock: Clock,
    ) -> None:
        self.admit: Callable[[Held], Awaitable[Envelope | None]] = _admit_nothing
        self._connection = connection
        self._credits = credits
        self._leases = leases
        self._stream = stream
        self._request_timeout = request_timeout
        self._clock = clock
        many = len(consumers) > 1
        self._pulls = Pulls(consumers, PULL_OF_MANY_SECONDS if many else PULL_SECONDS)
        self._inbox = connection.new_inbox()
        self._ear: Ear | None = None
        self._waiters: dict[_Waiter, float] = {}
        self._unwanted_since = 0.0
        self._heard_at = 0.0
        self.lanes = Lanes()
        self._ears: dict[str, Ear] = {}
        self._spare: deque[tuple[Held, float]] = deque()
        self._ready: deque[tuple[Admitted, float]] = deque()
        self._looking = 0
        self._looks: asyncio.TaskGroup | None = None
        self._back: deque[tuple[Held, float]] = deque()
        self._handing_back = asyncio.Lock()
        self._stir = asyncio.Event()
        self._open = False

    async def open(self) -> None:
        """Begin to listen; run `tend` from now on."""
        self._open = True
        self._heard_at = self._clock.monotonic()
        self._ear = await self._connection.listen(f"{self._inbox}.*", self._on_message)
        self._connection.when_up(self._on_up)

    async def close(self) -> None:
        """Send readers away and hand back what nobody took, within a few seconds."""
        self._open = False
        self.dismiss(list(self._waiters), "The NATS transport is closed")
        with suppress(TimeoutError, TransportUnavailableError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                if self._ear is not None:
                    await self._connection.unlisten(self._ear)
                self._let_go(math.inf)
                await self._hand_all_back()

    def check_open(self) -> None:
        """Return if open.

        Raises:
            TransportUnavailableError: it is not.
        """
        if not self._open:
            raise unavailable("The NATS transport is not open")

    async def take(self, waiters: set[_Waiter]) -> Admitted:
        """Wait for a message that may be worked on now; it is handed out.

        Args:
            waiters: holds the wait while it lasts, for `dismiss`.

        Raises:
            TransportUnavailableError: the server sends nothing any more, or the reader was
                dismissed.
        """
        self.check_open()
        waiter: _Waiter = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = self._clock.monotonic()
        waiters.add(waiter)
        try:
            self._serve()
            await self._ask()
            held, envelope = await waiter
        except BaseException:
            self._leave(waiter)
            raise
        finally:
            waiters.discard(waiter)
        self._leases.hand_out(held)
        return held, envelope

    def dismiss(self, waiters: Iterable[_Waiter], reason: str) -> None:
        """Send readers away that wait."""
        for waiter in waiters:
            self._drop(waiter)
            if not waiter.done():
                waiter.set_exception(unavailable(reason))

    def hand_back(self, held: Held, delay: float = 0.0) -> None:
        """Give a message back to the server, unspent, soon."""
        self._back.append((held, delay))
        self._stir.set()

    def park(self, held: Held) -> None:
        """Keep a message until the ones before it in its session are gone."""
        now = self._clock.monotonic()
        if len(self.lanes) >= MAX_PARKED:
            self.hand_back(held, self._leases.seconds / 2)
            return
        held.since = held.since or now
        held.raw, held.headers = b"", {}
        self.lanes.add(held, now)

    def wake(self, subject: str) -> None:
        """Note that the head of a subject is gone: the next one may go to a reader."""
        self.lanes.wake(subject)
        self._serve()

    async def tend(self) -> None:
        """Look after everything that no reader does; ends when cancelled."""
        async with asyncio.TaskGroup() as self._looks:
            self._serve()
            while True:
                await self._tend_once()

    async def _tend_once(self) -> None:
        await self._next_tick()
        now = self._clock.monotonic()
        self._let_go(now)
        for step in (
            self._hand_all_back,
            self._attend,
            self._keep_parked,
            self._credit_parked,
            self._ask,
        ):
            with suppress(TransportUnavailableError):
                await step()
        self.lanes.wake_unseen(now - LOOK_AGAIN_SECONDS)
        self._serve()
        self._give_up(now)

    # --- readers -----------------------------------------------------------------------------

    @property
    def _wanted(self) -> int:
        """Readers for whom nothing is here or being looked at."""
        return len(self._waiters) - self._looking - len(self._ready)

    def _serve(self) -> None:
        """Give readers what is ready, and look at more for the others."""
        while self._ready and (waiter := self._first_waiter()) is not None:
            admitted, _ = self._ready.popleft()
            if not self._leases.is_over(admitted[0]):
                self._drop(waiter)
                waiter.set_result(admitted)
        while self._wanted > 0 and self._looks is not None:
            held = self._spare.popleft()[0] if self._spare else self.lanes.take_due()
            if held is None:
                return
            self._looking += 1
            self.lanes.look(held)
            self._looks.create_task(self._look(held))

    def _first_waiter(self) -> _Waiter | None:
        # One that was cancelled stands here until its reader ran.
        return next((waiter for waiter in self._waiters if not waiter.done()), None)

    async def _look(self, held: Held) -> None:
        envelope = None
        try:
            envelope = await self.admit(held)
        except TurnlineError:
            self.park(held)  # to be looked at again when the server does its part
        finally:
            self._looking -= 1
            self.lanes.looked(held)
        if envelope is not None:
            self._ready.append(((held, envelope), self._clock.monotonic()))
            self._stir_if_unwanted()
        self._serve()
        with suppress(TransportUnavailableError):
            await self._ask()

    def _stir_if_unwanted(self) -> None:
        if not self._waiters:
            self._stir.set()

    def _leave(self, waiter: _Waiter) -> None:
        self._drop(waiter)
        if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
            self._ready.appendleft((waiter.result(), self._clock.monotonic()))
            self._stir_if_unwanted()
            self._serve()

    def _drop(self, waiter: _Waiter) -> None:
        if self._waiters.pop(waiter, None) is not None and not self._waiters:
            self._unwanted_since = self._clock.monotonic()

    def _give_up(self, now: float) -> None:
        """Send away who waited long for a server that says nothing at all."""
        patience = self._request_timeout + PULL_SECONDS
        late = [
            w for w, since in self._waiters.items() if max(since, self._heard_at) < now - patience
        ]
        self.dismiss(late, "NATS sends nothing")

    # --- the server --------------------------------------------------------------------------

    async def _on_message(self, message: Msg) -> None:
        now = self._clock.monotonic()
        held = held_of(message, now + self._leases.usable_seconds)
        if held is None:
            number, status = _status(message)
            if status == "100":
                return
            if self._pulls.ended(number, status, now):
                self._heard_at = now
        else:
            self._heard_at = now
            self._pulls.arrived(held.consumer)
            self.lanes.remove(held)
            self._leases.arrived(held)
            self._spare.append((held, now))
            self._stir_if_unwanted()
            self._serve()
        with suppress(TransportUnavailableError):
            await self._ask()

    def _on_up(self) -> None:
        self._pulls.void()
        self._stir.set()

    async def _ask(self) -> None:
        if not self._open or not self._connection.is_up:
            return
        for pull in self._pulls.wanted(self._wanted, self._clock.monotonic()):
            await self._connection.publish(
                f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{pull.consumer}",
                pull.body,
                reply=f"{self._inbox}.{pull.number}",
            )

    # --- parked and unwanted messages --------------------------------------------------------

    async def _next_tick(self) -> None:
        tick = min(_TICK_SECONDS, self._leases.seconds / 10)
        if self._spare or self._ready:
            tick = SPARE_SECONDS
        with suppress(TimeoutError):
            async with asyncio.timeout(tick):
                await self._stir.wait()
        self._stir.clear()

    async def _hand_all_back(self) -> None:
        async with self._handing_back:
            failed: list[tuple[Held, float]] = []
            while self._back:
                batch = [self._back.popleft() for _ in range(min(_AT_ONCE, len(self._back)))]
                await _all(self._hand_one_back(held, delay, failed) for held, delay in batch)
            self._back.extend(failed)

    async def _hand_one_back(
        self, held: Held, delay: float, failed: list[tuple[Held, float]]
    ) -> None:
        try:
            self._leases.check(held)
            await self._credit(held)
            await self._leases.give_back(held, delay)
        except TransportUnavailableError:
            failed.append((held, delay))
        except FencedError:
            return

    async def _credit(self, held: Held) -> None:
        if held.credited:
            return
        if held.unspent is None:
            held.unspent = await self._credits.read(held)
        await self._credits.write(held, held.unspent + 1)
        held.credited = True

    async def _attend(self) -> None:
        """Listen for the end of heads that others hold; then look, lest it came before."""
        parked = set(self.lanes.subjects)
        for subject in self._ears.keys() - parked:
            await self._connection.unlisten(self._ears.pop(subject))
        for subject in parked - self._ears.keys() - self._leases.subjects_out():

            async def on_settled(_: Msg, subject: str = subject) -> None:
                self.wake(subject)

            self._ears[subject] = await self._connection.listen(
                settled_subject(self._stream, subject), on_settled
            )
            self.wake(subject)

    async def _keep_parked(self) -> None:
        old = [held for held in self.lanes if self._leases.wants_renewal(held)]
        for held in [held for held in old if self._leases.is_over(held)]:
            self.lanes.remove(held)
        for start in range(0, len(old), _AT_ONCE):
            await _all(self._keep(held) for held in old[start : start + _AT_ONCE])

    async def _keep(self, held: Held) -> None:
        with suppress(TransportUnavailableError, FencedError):
            await self._leases.renew(held)

    async def _credit_parked(self) -> None:
        before = self._clock.monotonic() - CREDIT_AFTER_SECONDS
        bare = [held for held in self.lanes if not held.credited and held.since <= before]
        for start in range(0, len(bare), _AT_ONCE):
            await _all(self._try_credit(held) for held in bare[start : start + _AT_ONCE])

    async def _try_credit(self, held: Held) -> None:
        with suppress(TransportUnavailableError):
            await self._credit(held)

    def _let_go(self, now: float) -> None:
        """Hand back what is here while nobody waits: another process may."""
        while self._spare and self._spare[0][1] < now - SPARE_SECONDS:
            self.hand_back(self._spare.popleft()[0])
        while self._ready and self._ready[0][1] < now - SPARE_SECONDS:
            self.hand_back(self._ready.popleft()[0][0])
        if self._waiters:
            return
        idle = now - self._unwanted_since
        if idle > UNWANTED_SECONDS:
            self._unpark(self.lanes)
        elif idle > DUE_UNWANTED_SECONDS:
            while (held := self.lanes.take_due()) is not None:
                self.hand_back(held)

    def _unpark(self, parked: Iterable[Held]) -> None:
        for held in list(parked):
            self.lanes.remove(held)
            self.hand_back(held)


async def _admit_nothing(_: Held) -> Envelope | None:
    raise AssertionError("the queue says how to admit")


def _status(message: Msg) -> tuple[int, str]:
    number = message.subject.rpartition(".")[2]
    return int(number) if number.isdigit() else 0, (message.headers or {}).get("Status", "")


async def _all(calls: Iterable[Coroutine[None, None, None]]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for call in calls:
            tasks.create_task(call)
