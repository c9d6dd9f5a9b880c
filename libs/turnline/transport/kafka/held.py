"""A record that is out with a reader, under a lease of this process."""

from dataclasses import dataclass

from turnline.protocol.clock import Timer
from turnline.transport.kafka.holding import Lane, Record


@dataclass(slots=True, eq=False, kw_only=True)
class Held:
    """One delivery.

    Attributes:
        until: by our clock, when its lease is over.
        over: it was settled, its lease is over, or its partition is lost.
        done: its holder acked or buried it; all that is missing is the brokers' confirmation.
    """

    lane: Lane
    record: Record
    attempt: int
    until: float
    over: bool = False
    done: bool = False
    timer: Timer | None = None
