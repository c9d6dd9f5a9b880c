"""The state of one queue: groups, leases, pauses.  Pure: no asyncio, no clock, no envelopes.

Time comes in as `now` (seconds, monotonic) with each call.  Every operation costs constant time,
save for pauses (logarithmic in the number of pausing groups) and `oldest_arrival`.

A group is in one of three states: its head may be taken (it stands in `_ready`), its head is
leased, or its head pauses before a retry.  That is all there is to exclusivity and order: only
heads are ever taken, and a head leaves its place only for good.
"""

import heapq
import itertools
import math
from collections import OrderedDict, deque
from dataclasses import dataclass, field

from turnline.errors import QueueFullError

MIN_RETRY_AFTER = 1.0
MAX_RETRY_AFTER = 60.0
_WORK_SMOOTHING = 0.1  # weight of the newest lease in the running mean of seconds per message


@dataclass(slots=True, eq=False)
class Group:
    """Messages that are delivered one at a time, in order.

    Attributes:
        name: the group's token.
        messages: oldest first; the head is the one that is taken, leased or pausing.
    """

    name: str
    messages: "deque[Message]" = field(default_factory=deque)


@dataclass(slots=True, eq=False)
class Message:
    """One message on the queue.

    Attributes:
        raw: its bytes.
        arrived: when it came, monotonic seconds.
        spent: attempts that ended without settling it for good and were not released.
    """

    raw: bytes
    group: Group
    arrived: float
    spent: int = 0


@dataclass(slots=True, eq=False)
class Lease:
    """The right to settle a message, until `until` or until it is used.

    Attributes:
        attempt: 1 for a message never tried.
        since: when it was taken, monotonic seconds.
    """

    message: Message
    attempt: int
    since: float
    until: float


class Backlog:
    """Groups of messages under leases.

    Args:
        lease_seconds: how long a lease lasts from its start or last renewal.
        max_messages: messages held over all groups.
        max_per_group: messages held in one group; 0 means no such limit.
        max_bytes: bytes held over all groups; an empty queue takes one message of any size.
    """

    def __init__(
        self, *, lease_seconds: float, max_messages: int, max_per_group: int, max_bytes: int
    ) -> None:
        self._lease_seconds = lease_seconds
        self._max_messages = max_messages
        self._max_per_group = max_per_group
        self._max_bytes = max_bytes
        self._groups: dict[str, Group] = {}
        self._ready: deque[Group] = deque()
        # In order of `until`, which needs no sorting: every lease lasts equally long.
        self._leases: OrderedDict[Lease, None] = OrderedDict()
        self._pauses: list[tuple[float, int, Group]] = []
        self._pause_order = itertools.count()
        self._count = 0
        self._bytes = 0
        self._work_seconds = MIN_RETRY_AFTER

    @property
    def in_flight(self) -> int:
        """Messages under a lease."""
        return len(self._leases)

    @property
    def waiting(self) -> int:
        """Messages not under a lease."""
        return self._count - len(self._leases)

    def oldest_arrival(self) -> float | None:
        """When the oldest message came; None when empty.  Costs a step per group."""
        return min((group.messages[0].arrived for group in self._groups.values()), default=None)

    def next_event(self) -> float:
        """When the next lease or pause ends; infinity when there is none."""
        lease_end = next(iter(self._leases)).until if self._leases else math.inf
        pause_end = self._pauses[0][0] if self._pauses else math.inf
        return min(lease_end, pause_end)

    def add(self, raw: bytes, group_name: str, now: float) -> None:
        """Put a message at the end of its group.

        Raises:
            QueueFullError: the queue, or the group's share of it, is full.
        """
        too_many_bytes = self._count > 0 and self._bytes + len(raw) > self._max_bytes
        if self._count >= self._max_messages or too_many_bytes:
            raise self._full("queue", self._work_seconds / max(1, len(self._leases)))
        group = self._groups.get(group_name)
        if group is None:
            group = self._groups[group_name] = Group(group_name)
            self._ready.append(group)
        elif 0 < self._max_per_group <= len(group.messages):
            raise self._full("session", self._work_seconds)
        group.messages.append(Message(raw, group, now))
        self._count += 1
        self._bytes += len(raw)

    def take(self, now: float) -> Lease | None:
        """Lease the head of the group that has been ready longest; None when no group is."""
        if not self._ready:
            return None
        message = self._ready.popleft().messages[0]
        lease = Lease(message, message.spent + 1, now, now + self._lease_seconds)
        self._leases[lease] = None
        return lease

    def is_live(self, lease: Lease) -> bool:
        """Whether the lease may still be used; call `pass_time` first."""
        return lease in self._leases

    def renew(self, lease: Lease, now: float) -> None:
        """Start a live lease anew."""
        lease.until = now + self._lease_seconds
        self._leases.move_to_end(lease)

    def remove(self, lease: Lease, now: float) -> None:
        """Take the leased message off the queue; its group goes on."""
        del self._leases[lease]
        self._work_seconds += _WORK_SMOOTHING * (now - lease.since - self._work_seconds)
        group = lease.message.group
        group.messages.popleft()
        self._count -= 1
        self._bytes -= len(lease.message.raw)
        if group.messages:
            self._ready.append(group)
        else:
            del self._groups[group.name]

    def pause(self, lease: Lease, until: float) -> None:
        """Spend the attempt and block the group until then."""
        del self._leases[lease]
        lease.message.spent = lease.attempt
        entry = (until, next(self._pause_order), lease.message.group)
        heapq.heappush(self._pauses, entry)

    def put_back(self, lease: Lease) -> None:
        """End the lease without spending the attempt; the group is ready, behind the others."""
        del self._leases[lease]
        self._ready.append(lease.message.group)

    def untake(self, lease: Lease) -> None:
        """Undo `take`: the group is ready again, before the others."""
        del self._leases[lease]
        self._ready.appendleft(lease.message.group)

    def pass_time(self, now: float) -> None:
        """End leases and pauses that are over; an expired lease has spent its attempt."""
        while self._leases:
            lease = next(iter(self._leases))
            if lease.until > now:
                break
            del self._leases[lease]
            lease.message.spent = lease.attempt
            self._ready.append(lease.message.group)
        while self._pauses and self._pauses[0][0] <= now:
            self._ready.append(heapq.heappop(self._pauses)[2])

    def _full(self, scope: str, seconds: float) -> QueueFullError:
        text = "This session has" if scope == "session" else "The queue has"
        wait = min(MAX_RETRY_AFTER, max(MIN_RETRY_AFTER, seconds))
        return QueueFullError(f"{text} too many turns waiting", scope=scope, retry_after=wait)
