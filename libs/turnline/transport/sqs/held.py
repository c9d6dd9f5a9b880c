"""A message that SQS delivered to us, before it is anybody's delivery."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(slots=True, eq=False, kw_only=True)
class Held:
    """One delivery by SQS, under its visibility timeout.

    Attributes:
        id: SQS's name of the message.
        receipt: names this delivery; what settles it.
        group: the message's group.
        body: its text.
        attributes: its message attributes; of binary ones nothing.
        received: how many times SQS delivered it, this time included.
        sent_at: seconds since the epoch.
        came_at: by our clock, when it came.
        lease_until: by our clock, when the lease is over at the latest.
        unspent: deliveries before this one that started no attempt, as far as this process knows.
        counted: which attempt this is by the books of all processes; 0: they do not say.
        dedup_id: of its envelope; empty: not read yet.
        ceiling: the delivery after which SQS itself gives the message up; 0: unknown.
    """

    id: str
    receipt: str
    group: str
    body: str
    attributes: Mapping[str, str]
    received: int
    sent_at: float
    came_at: float
    lease_until: float
    unspent: int = 0
    counted: int = 0
    dedup_id: str = ""
    ceiling: int = 0

    @property
    def attempt(self) -> int:
        """Which attempt this is.

        On the last delivery before SQS gives the message up, every one before counts: the
        application has to answer now, or nobody will.
        """
        if self.ceiling and self.received >= self.ceiling:
            return self.received
        return self.counted or max(1, self.received - self.unspent)
