"""Which pull requests are open and which to make next.  Pure: asks no server, has no clock.

A pull asks one consumer for one message.  The rule is that no more are open than readers wait, so
that nothing is leased which nobody wants.  With one consumer that is one pull per reader.  With
many, consumers are asked in turn without waiting, and only when all were found empty is one pull
left open at each.
"""

from collections.abc import Sequence
from dataclasses import dataclass

# Statuses that end a pull in the ordinary way: nothing there, and its time is over.
_EMPTY = {"404", "408"}
_BLOCKED_SECONDS = 0.5
# What a pull's answer may take beyond its expiry before it counts as lost.
_GRACE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """A pull request to make.

    Attributes:
        number: comes back with its status.
        wait_seconds: how long it stays open; 0: it is answered at once.
    """

    number: int
    consumer: str
    wait_seconds: float

    @property
    def body(self) -> bytes:
        """The request as the server reads it."""
        if self.wait_seconds:
            return b'{"batch": 1, "expires": %d}' % round(self.wait_seconds * 1e9)
        return b'{"batch": 1, "no_wait": true}'


class Pulls:
    """The open pulls of one queue."""

    def __init__(self, consumers: Sequence[str], wait_seconds: float) -> None:
        self._consumers = tuple(consumers)
        self._wait_seconds = wait_seconds
        self._next_number = 1
        self._open: dict[int, tuple[Pull, float]] = {}
        self._turn = 0
        self._empty_in_a_row = 0
        self._blocked_until = 0.0

    def __len__(self) -> int:
        """Pulls that may still bring a message."""
        return len(self._open)

    def void(self) -> None:
        """Forget all: the connection they came over is gone."""
        self._open.clear()
        self._empty_in_a_row = 0

    def arrived(self, consumer: str) -> None:
        """Note that a consumer sent a message; it serves its pulls in their order."""
        self._empty_in_a_row = 0
        for number, (pull, _) in self._open.items():
            if pull.consumer == consumer:
                del self._open[number]
                return

    def ended(self, number: int, status: str, now: float) -> bool:
        """Note that the server ended a pull without a message; return whether all is well."""
        if number not in self._open and self._open:
            # Its message was taken for that of an older one.
            number = next(iter(self._open))
        pull, _ = self._open.pop(number, (None, 0.0))
        at_once = pull is not None and not pull.wait_seconds
        # 409 is also how a consumer with all its deliveries out answers.
        if status not in _EMPTY and not (at_once and status == "409"):
            self._blocked_until = now + _BLOCKED_SECONDS
            return False
        self._empty_in_a_row += at_once
        return True

    def wanted(self, waiting: int, now: float) -> list[Pull]:
        """Give the pulls to make for so many waiting readers; they count as open from now on."""
        overdue = [number for number, (_, until) in self._open.items() if until < now]
        for number in overdue:
            del self._open[number]
        if not waiting or now < self._blocked_until:
            return []
        if len(self._consumers) == 1:
            missing = max(0, waiting - len(self._open))
            return [self._make(self._consumers[0], self._wait_seconds, now) for _ in range(missing)]
        return self._wanted_of_many(waiting, now)

    def _wanted_of_many(self, waiting: int, now: float) -> list[Pull]:
        asking = sum(1 for pull, _ in self._open.values() if not pull.wait_seconds)
        if self._empty_in_a_row < len(self._consumers):
            return [self._make(self._in_turn(), 0.0, now) for _ in range(waiting - asking)]
        covered = {pull.consumer for pull, _ in self._open.values() if pull.wait_seconds}
        return [
            self._make(consumer, self._wait_seconds, now)
            for consumer in self._consumers
            if consumer not in covered
        ]

    def _in_turn(self) -> str:
        self._turn = (self._turn + 1) % len(self._consumers)
        return self._consumers[self._turn]

    def _make(self, consumer: str, wait_seconds: float, now: float) -> Pull:
        pull = Pull(number=self._next_number, consumer=consumer, wait_seconds=wait_seconds)
        self._next_number += 1
        self._open[pull.number] = (pull, now + wait_seconds + _GRACE_SECONDS)
        return pull
