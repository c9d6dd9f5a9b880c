"""What a transport is: two queues on a broker.

Written for whoever implements one.  A transport is whatever passes the conformance suite in
`turnline.testing.conformance.transport`; differences are declared as `Capabilities` with a reason,
never left for the reader to find.  ADR 0003 says why order is the transport's promise and not the
runner's.

What every transport promises:

*   **Confirmed.** `send` returns when the broker has the envelope.  After an error the envelope
    may or may not be there; sending it again is safe, its `dedup_id` sees to that.
*   **Ordered.** Envelopes of one group (`envelope.session_key`) are delivered in the order they
    were sent, and at most one delivery of a group is out at a time, over all consumers.  An
    envelope that waits for its retry blocks its group and nothing else.
*   **At least once.** An envelope stays until `ack` or `dead_letter`.  A delivery whose lease runs
    out comes back with the next attempt number.
*   **No prefetch.** An envelope is leased only while a consumer waits in `receive`, so a busy
    consumer holds nothing hostage.
*   **Bounded.** A full queue refuses with QueueFullError; it never drops.
*   **Nothing is lost silently.** What can't be decoded goes to the dead letters with its raw bytes
    and the reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, Self

from turnline.protocol import Envelope


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a transport can do, as data.

    Attributes:
        ordered: keeps the order promise above.
        durable: envelopes outlive the process.
        delayed_retry: `retry(after)` honours `after`.
        native_count: attempts are counted by the broker and survive a crash of the consumer.
        release_keeps_attempt: `release` does not spend an attempt.
        max_bytes: largest encoded envelope; None means no limit of its own.
        differences: name of a conformance case this transport does not meet -> the reason.
    """

    ordered: bool = True
    durable: bool = True
    delayed_retry: bool = True
    native_count: bool = True
    release_keeps_attempt: bool = True
    max_bytes: int | None = None
    differences: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStats:
    """A queue at one moment.

    Attributes:
        waiting: envelopes not out for delivery, those that wait for their retry included.
        in_flight: deliveries out and not settled.
        dead: dead letters held.
        oldest_age_seconds: age of the oldest envelope that is not settled; 0 when empty.
    """

    waiting: int
    in_flight: int
    dead: int
    oldest_age_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """An envelope that was given up.

    Attributes:
        id: names it within its queue; opaque.
        reason: why, one sentence; holds no prompt.
        at: seconds since the epoch when it was given up.
        attempt: attempts spent.
        raw: the bytes as they were on the queue.
        envelope: None when `raw` can't be decoded.
    """

    id: str
    reason: str
    at: float
    attempt: int
    raw: bytes
    envelope: Envelope | None


class DeadLetters(Protocol):
    """The dead letters of one queue.  Bounded; when full the oldest gives way, with a warning."""

    async def list(self, *, limit: int = 100, after: str = "") -> Sequence[DeadLetter]:
        """Give up to `limit` dead letters, oldest first, starting behind the id `after`."""
        ...

    async def show(self, letter_id: str) -> DeadLetter:
        """Give one.

        Raises:
            NotFoundError: no dead letter of that id.
        """
        ...

    async def redrive(self, letter_id: str) -> None:
        """Put one back at the end of its group as if never tried, past the dedup window.

        A request's deadline starts anew: it gets as long as it had when it was admitted.

        Raises:
            NotFoundError: no dead letter of that id.
            UndecodableError: its bytes are no envelope; purge it.
            QueueFullError: no room; it stays a dead letter.
        """
        ...

    async def purge(self, letter_id: str | None = None) -> int:
        """Delete one, or all with None; give how many were deleted.

        Raises:
            NotFoundError: no dead letter of that id.
        """
        ...


class Delivery(Protocol):
    """One receipt of an envelope, under a lease.  Settle it exactly once.

    Settling twice, or after the lease ran out and the envelope was delivered again, raises
    FencedError and changes nothing.
    """

    @property
    def envelope(self) -> Envelope:
        """The envelope, decoded."""
        ...

    @property
    def attempt(self) -> int:
        """1 on the first delivery; grows by one with each that was not released."""
        ...

    async def ack(self) -> None:
        """Remove the envelope; returns when the broker confirmed it."""
        ...

    async def retry(self, after: float) -> None:
        """Give it back for another attempt in `after` seconds; its group waits until then."""
        ...

    async def release(self) -> None:
        """Give it back at once, unspent: the next delivery has the same attempt number."""
        ...

    async def dead_letter(self, reason: str) -> None:
        """Move it to the dead letters; `reason` is one sentence without the prompt."""
        ...

    async def renew(self) -> None:
        """Start the lease anew.

        Raises:
            FencedError: the lease had run out already; stop working on it.
        """
        ...


class Consumer(Protocol):
    """One reader of a queue; use as an async context manager."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc_info: object) -> None:
        """Stop reading.  Deliveries handed out before can still be settled."""
        ...

    async def receive(self) -> Delivery:
        """Wait for the next delivery, without limit.

        Cancelling the wait loses nothing: an envelope is out only when this returned.

        Raises:
            TransportUnavailableError: the broker can't be reached; call again.
        """
        ...


class Queue(Protocol):
    """One queue of a transport."""

    @property
    def capabilities(self) -> Capabilities:
        """What the transport can do."""
        ...

    @property
    def dead_letters(self) -> DeadLetters:
        """What was given up on this queue."""
        ...

    async def send(self, envelope: Envelope) -> bool:
        """Add an envelope; return False if one of its `dedup_id` came within the dedup window.

        Raises:
            PayloadTooLargeError: over `capabilities.max_bytes`.
            QueueFullError: no room; carries the seconds to wait.
            TransportUnavailableError: no confirmation in time.
        """
        ...

    def consumer(self) -> Consumer:
        """Make a reader; several may read at once."""
        ...

    async def stats(self) -> QueueStats:
        """Count what is on the queue now; exact or the broker's estimate."""
        ...


class Transport(Protocol):
    """An input and an output queue; use as an async context manager.

    Entering connects and checks that everything exists, raising ConfigurationError with every
    missing or differing object named.  Leaving closes within a few seconds whatever the broker
    does.
    """

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc_info: object) -> None: ...

    @property
    def input(self) -> Queue:
        """Requests, from request handlers and gateways to runners."""
        ...

    @property
    def output(self) -> Queue:
        """Answers, from runners to responders."""
        ...

    async def check(self) -> None:
        """Return if the broker answers now.

        Raises:
            TransportUnavailableError: it does not.
        """
        ...


Admission = Literal["taken", "copy", "pending", "queue_full", "group_full"]


class Bookkeeping(Protocol):
    """What has to be remembered for a broker that neither counts deliveries nor drops copies.

    Kept in one process, or where the sessions are, shared by all processes; a queue is named by
    its topic, a record by its place.  Plain values only: stores implement this without knowing
    transports.  Every method raises StoreUnavailableError when the backing service does not answer.
    """

    @property
    def shared(self) -> bool:
        """Whether other processes see the same books, and a restart finds them again."""
        ...

    async def admit(
        self,
        queue: str,
        dedup_id: str,
        group: str,
        *,
        patience: float,
        max_messages: int,
        max_per_group: int,
    ) -> Admission:
        """Take in what is about to be sent, in one step with the checks.

        `copy`: one of that id was sent within its window; `pending`: one is being sent.  What was
        taken holds room until `finish`, and its id until `sent`, or for `patience` seconds.

        Args:
            max_messages: unfinished messages the queue holds.
            max_per_group: those of one group; 0: as many as the queue.
        """
        ...

    async def sent(
        self, queue: str, dedup_id: str, group: str, *, window: float, place: tuple[int, int] | None
    ) -> None:
        """Say what became of what was admitted.

        Args:
            window: seconds for which the id is remembered; 0: not at all.
            place: partition and offset; None: it was not sent, or nobody knows: forget it.
        """
        ...

    async def begin(
        self, queue: str, record: str, dedup_id: str, *, sent_at: float, window: float
    ) -> int:
        """Count a delivery of a record before it is made; return which one it is, from 1.

        0: the record is a copy of another one, sent less than `window` seconds before it.
        An empty `dedup_id` has no copies.
        """
        ...

    async def unspend(self, queue: str, record: str) -> None:
        """Take back what `begin` counted last: that delivery was not made, or was released."""
        ...

    async def finish(
        self, queue: str, record: str, dedup_id: str, group: str, *, window: float
    ) -> None:
        """Forget a record that is done for good, but for its id; repeating it changes nothing."""
        ...

    async def forget(self, queue: str, below: Mapping[int, int]) -> None:
        """Give back the room of what lies below these offsets, by partition: it is done.

        Of use where one process alone keeps the books and others finish.
        """
        ...
