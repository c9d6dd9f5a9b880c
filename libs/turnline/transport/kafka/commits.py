"""Commits of one member, one at a time: what is acked meanwhile goes with the next one.

They keep a pace: hundreds of acks a second need not be hundreds of commits.  The more acks one
spoke for, the longer the next one waits for company, up to a bound; a lone ack hardly waits.  A
commit says of a partition how far it is done, with the gaps (`progress`), so the newest one speaks
for all before it.  Lives in the loop.
"""

import asyncio
import math
from collections import deque
from collections.abc import Callable

from confluent_kafka import KafkaError, TopicPartition

from turnline.errors import FencedError, TurnlineError
from turnline.protocol.deadline import TimeLimit
from turnline.transport.kafka.errors import REFUSALS, STALE, unavailable
from turnline.transport.kafka.holding import Holding
from turnline.transport.kafka.member import Offsets

_AGAIN_SECONDS = 0.2
_PACE_SECONDS_PER_ACK = 0.004
_LONGEST_PACE_SECONDS = 0.02
# How long a group may call our membership stale before we believe it.
_STALE_SECONDS = 3.0
Waiters = list["asyncio.Future[None]"]


class Commits:
    """What is to be committed, what is on its way, and who waits for it.

    Args:
        send: hands offsets to the member; False: there is none now.
        refused: told that the group refused what we hold.
    """

    def __init__(
        self,
        topic: str,
        *,
        send: Callable[[Offsets], bool],
        refused: Callable[[Holding], None],
        seconds: float,
    ) -> None:
        self._topic = topic
        self._send = send
        self._refused = refused
        self._limit = TimeLimit(seconds)
        self._dirty: dict[Holding, Waiters] = {}
        self._flights: deque[dict[Holding, Waiters]] = deque()
        self._again: asyncio.TimerHandle | None = None
        self._refused_since: float | None = None
        self._due = -math.inf

    def enlist(self, holding: Holding) -> "asyncio.Future[None]":
        """Have a partition committed as it is now; give what `confirm` waits for."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.add_done_callback(_read_by_nobody)
        if holding.lost:
            future.set_exception(_lost())
            return future
        self._limit.add(future)
        self._dirty.setdefault(holding, []).append(future)
        self._next()
        return future

    async def confirm(self, commit: "asyncio.Future[None]") -> None:
        """Return once the brokers know how far a partition was done.

        Raises:
            FencedError: it is not ours any more.
            TransportUnavailableError: no confirmation in time; it is tried again by itself.
        """
        try:
            await commit
        except TimeoutError as error:
            raise unavailable(None, "did not confirm a commit in time") from error

    def note(self, holding: Holding) -> None:
        """Have a partition committed soon, with nobody waiting for it."""
        if not holding.lost:
            self._dirty.setdefault(holding, [])
            self._next()

    def flush(self) -> None:
        """Send what is to be committed although another is on its way: partitions are leaving."""
        self._fly()

    def ended(self, error: KafkaError | None, offsets: Offsets) -> None:
        """Hear of the oldest commit on its way."""
        if not self._flights:
            return
        errors = {each.partition: each.error for each in offsets}
        for holding, waiters in self._flights.popleft().items():
            self._end(holding, waiters, error or errors.get(holding.partition))
        self._next()

    def drop(self, holding: Holding) -> None:
        """Forget what was to be committed of a lost partition; what is on its way ends itself."""
        self._tell(self._dirty.pop(holding, []), _lost())

    def clear(self) -> None:
        """The member is gone, and every answer with it."""
        for flight in (*self._flights, self._dirty):
            for waiters in flight.values():
                self._tell(waiters, _lost())
        self._flights.clear()
        self._dirty = {}
        if self._again is not None:
            self._again.cancel()
            self._again = None

    def _next(self) -> None:
        if self._flights or self._again is not None:
            return
        if self._due > asyncio.get_running_loop().time():
            self._fly_later(self._due)
        else:
            self._fly()

    def _fly(self) -> None:
        batch = {holding: waiters for holding, waiters in self._dirty.items() if not holding.lost}
        offsets = []
        for holding in batch:
            known = holding.progress.commit()
            if known is not None:
                offsets.append(TopicPartition(self._topic, holding.partition, *known))
        if offsets and self._send(offsets):
            self._flights.append(batch)
            self._dirty = {}
            pace = _PACE_SECONDS_PER_ACK * max(1, sum(map(len, batch.values())))
            self._due = asyncio.get_running_loop().time() + min(pace, _LONGEST_PACE_SECONDS)

    def _end(self, holding: Holding, waiters: Waiters, error: KafkaError | None) -> None:
        if error is None:
            self._refused_since = None
            self._tell(waiters, None)
        elif holding.lost:
            self._tell(waiters, _lost())
        elif self._is_refusal(error):
            self._tell(waiters, _lost())
            self._refused(holding)
        else:
            # Its waiters go on waiting, each up to its own deadline.
            waiting = [waiter for waiter in waiters if not waiter.done()]
            self._dirty.setdefault(holding, []).extend(waiting)
            self._fly_later(asyncio.get_running_loop().time() + _AGAIN_SECONDS)

    def _is_refusal(self, error: KafkaError) -> bool:
        if error.code() in STALE:
            # Or only overtaken by a rebalance that leaves us the partition: the next one tells.
            now = asyncio.get_running_loop().time()
            self._refused_since = self._refused_since or now
            return now - self._refused_since > _STALE_SECONDS
        return error.code() in REFUSALS

    def _fly_later(self, due: float) -> None:
        if self._again is None:
            self._again = asyncio.get_running_loop().call_at(due, self._fly_again)

    def _fly_again(self) -> None:
        self._again = None
        self._next()

    def _tell(self, waiters: Waiters, error: TurnlineError | None) -> None:
        for waiter in waiters:
            if waiter.done():
                continue
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)


def _lost() -> FencedError:
    return FencedError("The partition was given to another consumer")


def _read_by_nobody(future: "asyncio.Future[None]") -> None:
    """Take note of a failure, or the loop complains that none did."""
    if not future.cancelled():
        future.exception()
