"""What an adapter provides so that the suite can be run over it.

The suite knows the port and this page, nothing else: the same cases run over a dictionary and over
a broker on the network.
"""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from turnline.transport import Capabilities, Delivery, Queue, Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How a case wants its transport made.  Small, so that real time can be waited for.

    Attributes:
        lease_seconds: the lease of a delivery.
        dedup_seconds: the dedup window.
        max_messages: what each queue holds.
        max_per_session: one session's share of the input queue; 0 means all of it.
        max_bytes: largest encoded envelope.
        max_dead_letters: dead letters each queue holds.
    """

    lease_seconds: float = 3.0
    dedup_seconds: float = 4.0
    max_messages: int = 2_000
    max_per_session: int = 0
    max_bytes: int = 64 * 1024
    max_dead_letters: int = 200


DEFAULT_BOUNDS = Bounds()


class Time(Protocol):
    """The time the transport lives in: the real one, or one moved by hand."""

    def now(self) -> float:
        """Seconds since the epoch, as the transport sees it."""
        ...

    async def pass_seconds(self, seconds: float) -> None:
        """Return when the transport has lived `seconds` longer."""
        ...

    async def calm(self) -> None:
        """Return when all that can happen without waiting has happened.

        With a broker this is a wait of about half a second; it decides how sure a case can be
        that *nothing* comes.
        """
        ...


class TransportHarness(Protocol):
    """Makes transports for cases.

    Attributes:
        capabilities: what the queues of this adapter say of themselves with default `Bounds`.  A
            case named in its `differences` (with or without the `[...]` of its parameters) must
            fail, and is reported with the reason.
        time: the transport's time.
        patience_seconds: real seconds to wait for what should come at once; generous.
    """

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def time(self) -> Time: ...

    @property
    def patience_seconds(self) -> float: ...

    def open(self, bounds: Bounds) -> AbstractAsyncContextManager[Transport]:
        """Give a fresh transport with empty queues, already entered; leaving removes them."""
        ...

    async def inject(self, queue: Queue, raw: bytes, group: str) -> None:
        """Put bytes on a queue behind its back, as a foreign producer would.

        Args:
            group: token of the session whose order they join.
        """
        ...

    async def crash(self, delivery: Delivery) -> None:
        """Make the holder of a delivery die without settling it; its lease runs on."""
        ...
