"""Hands the messages of one backlog to whoever waits for them, first come first served.

Whatever makes a group ready ends in `_serve`, so that no reader waits while something is ready.
Leases and pauses end by one timer per queue, whatever the number of messages.
"""

import asyncio
import math
from collections import OrderedDict

from turnline.errors import FencedError, TransportUnavailableError, UndecodableError
from turnline.protocol import Envelope
from turnline.protocol.clock import Clock, Timer
from turnline.protocol.json_body import decode_any
from turnline.telemetry import get_logger
from turnline.transport.in_memory.backlog import Backlog, Lease
from turnline.transport.in_memory.shelf import Shelf

_log = get_logger("transport")

Leased = tuple[Lease, Envelope]


class Dispatcher:
    """Readers on one side, a backlog and a shelf of dead letters on the other.

    All state changes happen between two awaits, so callers on one loop need no lock.
    """

    def __init__(self, *, name: str, backlog: Backlog, shelf: Shelf, clock: Clock) -> None:
        self.backlog = backlog
        self.shelf = shelf
        self.clock = clock
        self._name = name
        self._open = False
        self._readers: OrderedDict[asyncio.Future[Leased], None] = OrderedDict()
        self._timer: Timer | None = None
        self._timer_at = 0.0

    def open(self) -> None:
        """Begin to serve."""
        self._open = True
        self._arm()

    def close(self) -> None:
        """Serve nobody any more; readers that wait get TransportUnavailableError."""
        self._open = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for reader in list(self._readers):
            self.dismiss(reader, "The in_memory transport is closed")

    def check_open(self) -> None:
        """Return if the transport is open.

        Raises:
            TransportUnavailableError: it was not entered, or left.
        """
        if not self._open:
            raise TransportUnavailableError("The in_memory transport is not open")

    def put(self, raw: bytes, group: str) -> None:
        """Add a message.

        Raises:
            QueueFullError: no room.
        """
        now = self.clock.monotonic()
        self.backlog.add(raw, group, now)
        if self._readers:
            self._serve(now)

    def take(self) -> Leased | None:
        """Lease the next message at once; None if there is none or others wait for it already."""
        now = self.clock.monotonic()
        self._pass_time(now)
        return None if self._readers else self._next(now)

    def enqueue_reader(self) -> asyncio.Future[Leased]:
        """Stand in line for the next message; undo with `leave`."""
        reader: asyncio.Future[Leased] = asyncio.get_running_loop().create_future()
        self._readers[reader] = None
        return reader

    def leave(self, reader: asyncio.Future[Leased]) -> None:
        """Step out of line; what the reader was handed and never saw goes to the next in line."""
        self._readers.pop(reader, None)
        if not reader.done() or reader.cancelled() or reader.exception() is not None:
            return
        lease, _ = reader.result()
        now = self.clock.monotonic()
        self._pass_time(now)
        if self.backlog.is_live(lease):
            self.backlog.untake(lease)
            self._serve(now)

    def dismiss(self, reader: asyncio.Future[Leased], reason: str) -> None:
        """Send a waiting reader away with TransportUnavailableError; no-op if it was served."""
        self._readers.pop(reader, None)
        if not reader.done():
            reader.set_exception(TransportUnavailableError(reason))

    def ack(self, lease: Lease) -> None:
        """Take the message off the queue.

        Raises:
            FencedError: the lease is over.
        """
        now = self._use(lease)
        self.backlog.remove(lease, now)
        self._serve(now)

    def pause(self, lease: Lease, seconds: float) -> None:
        """Block the message's group for `seconds`, then deliver it with the next attempt.

        Raises:
            FencedError: the lease is over.
        """
        now = self._use(lease)
        self.backlog.pause(lease, now + max(0.0, seconds))
        self._pass_time(now)
        self._arm()

    def put_back(self, lease: Lease) -> None:
        """Give the message to the next reader as if it had not been taken.

        Raises:
            FencedError: the lease is over.
        """
        now = self._use(lease)
        self.backlog.put_back(lease)
        self._serve(now)

    def bury(self, lease: Lease, envelope: Envelope | None, reason: str) -> None:
        """Move the message to the shelf.

        Raises:
            FencedError: the lease is over.
        """
        now = self._use(lease)
        self._shelve(lease, envelope, reason, now)
        self._serve(now)

    def renew(self, lease: Lease) -> None:
        """Start the lease anew.

        Raises:
            FencedError: the lease is over.
        """
        self.backlog.renew(lease, self._use(lease))

    def pass_time(self) -> None:
        """End what is over by now, so that counts are true."""
        self._pass_time(self.clock.monotonic())

    def _use(self, lease: Lease) -> float:
        self.check_open()
        now = self.clock.monotonic()
        self._pass_time(now)
        if not self.backlog.is_live(lease):
            raise FencedError("This delivery was settled before, or its lease ran out")
        return now

    def _pass_time(self, now: float) -> None:
        if self.backlog.next_event() <= now:
            self.backlog.pass_time(now)
            self._serve(now)

    def _serve(self, now: float) -> None:
        while self._readers:
            leased = self._next(now)
            if leased is None:
                return
            reader, _ = self._readers.popitem(last=False)
            if reader.done():
                self.backlog.untake(leased[0])
            else:
                reader.set_result(leased)

    def _next(self, now: float) -> Leased | None:
        while (lease := self.backlog.take(now)) is not None:
            try:
                envelope = decode_any(lease.message.raw, {})
            except UndecodableError as error:
                _log.error(
                    "message.undecodable",
                    queue=self._name,
                    reason=error.message,
                    size=len(lease.message.raw),
                )
                self._shelve(lease, None, error.message, now)
                continue
            self._arm()
            return lease, envelope
        return None

    def _shelve(self, lease: Lease, envelope: Envelope | None, reason: str, now: float) -> None:
        self.backlog.remove(lease, now)
        self.shelf.add(
            raw=lease.message.raw,
            envelope=envelope,
            reason=reason,
            at=self.clock.time(),
            attempt=lease.attempt,
        )

    def _arm(self) -> None:
        moment = self.backlog.next_event()
        if moment == math.inf or (self._timer is not None and self._timer_at <= moment):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = moment
        self._timer = self.clock.call_at(moment, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._pass_time(self.clock.monotonic())
        self._arm()
