"""Hands the records of one queue to its readers: one of a key at a time, in order.

Lives in the loop, over a `Member` that exists while somebody reads or holds something.  A record is
held under a lease of this process, which decides by our clock; that a partition is ours is decided
by the group.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from confluent_kafka import KafkaError

from turnline.errors import FencedError, TransportUnavailableError, TurnlineError
from turnline.protocol.clock import Clock
from turnline.telemetry import get_logger
from turnline.transport.background import Background
from turnline.transport.kafka.commits import Commits
from turnline.transport.kafka.held import Held
from turnline.transport.kafka.holding import Holding, Lane, Prepared, Record
from turnline.transport.kafka.line import Line, Waiting
from turnline.transport.kafka.member import Member, MemberEvents, Offsets

_log = get_logger("transport")

_CLOSE_SECONDS = 3.0

Prepare = Callable[[Lane, Record], Coroutine[Any, Any, Prepared | None]]
Unspend = Callable[[Record], Coroutine[Any, Any, None]]


class Intake(MemberEvents):
    """The lanes of one queue and who waits for them.

    Attributes:
        prepare: makes a head ready; None: it needed no delivery, and was taken out by `drop`.
        unspend: takes back the count of a head that was made ready for nobody.
    """

    def __init__(
        self,
        *,
        topic: str,
        lease_seconds: float,
        commit_seconds: float,
        background: Background,
        clock: Clock,
        make_member: Callable[[MemberEvents], Member],
    ) -> None:
        self.prepare: Prepare
        self.unspend: Unspend
        self._lease_seconds = lease_seconds
        self._background = background
        self._clock = clock
        self._make_member = make_member
        self._member: Member | None = None
        self.commits = Commits(
            topic, send=self._send_commit, refused=self._refused, seconds=commit_seconds
        )
        self._holdings: dict[int, Holding] = {}
        self.line = Line(self._is_ready)
        self._out: set[Held] = set()
        self._ghosts: dict[bytes | None, set[Held]] = {}
        self._leaving: list[tuple[Sequence[Holding], Callable[[], None]]] = []
        self._readers = 0
        self._open = False
        self._stir = asyncio.Event()

    @property
    def holdings(self) -> Sequence[Holding]:
        """The partitions that are ours now."""
        return tuple(self._holdings.values())

    @property
    def out(self) -> int:
        """Deliveries that are out and whose work is not done."""
        return sum(1 for held in self._out if not held.done)

    # --- for the queue ---------------------------------------------------------------------------

    def open(self) -> None:
        """Begin to serve."""
        self._open = True

    def check_open(self) -> None:
        """Raise TransportUnavailableError if this serves nobody."""
        if not self._open:
            raise TransportUnavailableError("The transport is closed")

    def add_reader(self) -> None:
        """Somebody reads from now on."""
        self.check_open()
        self._readers += 1
        self._stir.set()

    def remove_reader(self) -> None:
        """Somebody reads no more."""
        self._readers -= 1
        self._stir.set()

    async def tend(self) -> None:
        """Be a member of the group while it is of use; ends when cancelled."""
        while True:
            self._stir.clear()
            wanted = self._open and bool(self._readers or self._out)
            if wanted and self._member is None:
                self._member = self._make_member(self)
                self._member.start()
            if self._member is not None:
                self._member.rest(not self._readers)
                if not wanted:
                    await self._leave()
            await self._stir.wait()

    async def close(self) -> None:
        """Serve nobody any more and leave the group, within some seconds."""
        self._open = False
        self.line.dismiss(None, "The transport was closed")
        await self._leave()

    async def take(self, waiting: Waiting) -> tuple[Held, Prepared]:
        """Wait for a record that may be handed out, and hold it.

        Args:
            waiting: where the wait is noted, for `dismiss`.
        """
        while True:
            self.check_open()
            lane = await self.line.take(waiting)
            try:
                prepared = await self._prepared(lane)
            except BaseException:
                self.line.put_back(lane)
                raise
            if prepared is not None and lane.is_live:
                return self._hold(lane, prepared), prepared
            self.line.put_back(lane)

    # --- for whoever holds something -------------------------------------------------------------

    def check(self, held: Held) -> None:
        """Raise FencedError unless a record is held still."""
        if held.record.holding.lost:
            self._lay_ghost(held)
            raise FencedError("The partition was given to another consumer")
        if held.over:
            raise FencedError("The lease of this delivery is over")

    def renew(self, held: Held) -> None:
        """Start its lease anew."""
        self.check(held)
        held.until = self._clock.monotonic() + self._lease_seconds

    def mark_done(self, held: Held) -> "asyncio.Future[None]":
        """Note that a record is done, and have that committed; give what confirms it.

        May be repeated as long as the record is held.
        """
        self.check(held)
        if not held.done:
            held.done = True
            self._finish(held.record)
        confirmed = self.commits.enlist(held.record.holding)
        # Not before: a partition goes with all that is done in it.
        self._let_leave()
        return confirmed

    def end(self, held: Held) -> None:
        """Let go of what is done, and hand out what comes behind it."""
        if self._let_go(held):
            self.drop(held.lane, held.record)

    def give_back(self, held: Held, seconds: float) -> None:
        """Let its key wait for some seconds, and hand the record out again."""
        self.check(held)
        self._let_go(held)
        held.record.prepared = None
        self._rest(held.lane, seconds)

    def drop(self, lane: Lane, record: Record) -> None:
        """Take a record that is done out of its lane."""
        if lane.records and lane.records[0] is record:
            lane.records.popleft()
        if not lane.records and lane.holding.lanes.get(lane.key) is lane:
            del lane.holding.lanes[lane.key]
        self.line.offer(lane)

    def skip(self, record: Record) -> None:
        """Note that a record needs no delivery."""
        self._finish(record)
        self.commits.note(record.holding)

    # --- what the member tells -------------------------------------------------------------------

    def assigned(self, holdings: Sequence[Holding]) -> None:
        """Partitions are ours."""
        self._holdings.update({holding.partition: holding for holding in holdings})

    def leaving(self, holdings: Sequence[Holding], gone: Callable[[], None]) -> None:
        """Partitions are to be given up: hand out nothing more of them."""
        for holding in holdings:
            holding.leaving = True
        self._leaving.append((holdings, gone))
        self._let_leave()

    def lost(self, holdings: Sequence[Holding]) -> None:
        """Partitions are not ours any more: drop what was read from them."""
        self._leaving = [entry for entry in self._leaving if entry[0] != holdings]
        for holding in holdings:
            if self._holdings.get(holding.partition) is holding:
                del self._holdings[holding.partition]
            self.commits.drop(holding)
            for lane in holding.lanes.values():
                self._lose(lane)
            holding.lanes.clear()
        self._stir.set()

    def records(self, records: Sequence[Record]) -> None:
        """Records were read."""
        behind = set()
        for record in records:
            holding = record.holding
            if holding.lost:
                continue
            if not holding.progress.read(record.offset):
                holding.note_done(record)
                behind.add(holding)
                continue
            lane = holding.lanes.get(record.key)
            if lane is None:
                lane = holding.lanes[record.key] = Lane(holding=holding, key=record.key)
            lane.records.append(record)
            if len(lane.records) == 1:
                self.line.offer(lane)
        for holding in behind:
            self.commits.note(holding)

    def committed(self, error: KafkaError | None, offsets: Offsets) -> None:
        """The oldest commit ended."""
        self.commits.ended(error, offsets)

    # --- ------------------------------------------------------------------------------------------

    async def _leave(self) -> None:
        member, self._member = self._member, None
        if member is None:
            return
        if not await member.close(_CLOSE_SECONDS):
            _log.warning(
                "dependency.unavailable",
                dependency="kafka",
                reason="the consumer does not close; left behind",
            )
        await asyncio.sleep(0)  # what it told last
        self.lost(self._mark_lost())
        self.commits.clear()

    def _mark_lost(self) -> list[Holding]:
        for holding in self._holdings.values():
            holding.lost = True
        return list(self._holdings.values())

    def _send_commit(self, offsets: Offsets) -> bool:
        if self._member is None:
            return False
        self._member.commit(offsets)
        return True

    def _refused(self, holding: Holding) -> None:
        """The group does not know us any more: nothing we hold is ours."""
        _log.warning(
            "dependency.unavailable",
            dependency="kafka",
            reason="the group refused a commit; joining anew",
        )
        self.lost(self._mark_lost())
        if self._member is not None:
            self._member.renew()

    async def _prepared(self, lane: Lane) -> Prepared | None:
        if not lane.is_live or not lane.records:
            return None
        record = lane.records[0]
        if record.prepared is None:
            record.prepared = self._background.start(self.prepare(lane, record))
        work = record.prepared
        try:
            return await asyncio.shield(work)
        except TurnlineError as error:
            record.prepared = None
            if isinstance(error, FencedError):
                return None
            raise

    def _is_ready(self, lane: Lane) -> bool:
        return lane.is_free and lane.key not in self._ghosts

    def _hold(self, lane: Lane, prepared: Prepared) -> Held:
        until = self._clock.monotonic() + self._lease_seconds
        held = Held(lane=lane, record=lane.records[0], attempt=prepared.attempt, until=until)
        held.timer = self._clock.call_at(until, lambda: self._look_at_lease(held))
        lane.out = held
        self._out.add(held)
        return held

    def _look_at_lease(self, held: Held) -> None:
        if held.until > self._clock.monotonic():
            held.timer = self._clock.call_at(held.until, lambda: self._look_at_lease(held))
            return
        self._lay_ghost(held)
        if held.done:
            self.end(held)
        elif self._let_go(held):
            held.record.prepared = None
            self.line.offer(held.lane)

    def _let_go(self, held: Held) -> bool:
        """Hold it no more; return whether its lane goes on."""
        if held.over:
            return False
        held.over = True
        if held.timer is not None:
            held.timer.cancel()
        self._out.discard(held)
        held.lane.out = None
        held.lane.taken = False
        self._let_leave()
        self._stir.set()
        return not held.record.holding.lost

    def _rest(self, lane: Lane, seconds: float) -> None:
        if seconds <= 0:
            self.line.offer(lane)
            return
        lane.resting = True
        self._clock.call_at(self._clock.monotonic() + seconds, lambda: self._wake(lane))

    def _wake(self, lane: Lane) -> None:
        lane.resting = False
        self.line.offer(lane)

    def _finish(self, record: Record) -> None:
        record.holding.progress.finish(record.offset)
        record.holding.note_done(record)

    def _let_leave(self) -> None:
        """Tell the member which partitions nothing is out of any more."""
        for entry in list(self._leaving):
            holdings, gone = entry
            busy = {held.record.holding for held in self._out if not held.done}
            if busy.isdisjoint(holdings):
                self._leaving.remove(entry)
                self.commits.flush()
                gone()

    def _lose(self, lane: Lane) -> None:
        self.line.drop(lane)
        held = lane.out
        if held is not None and not held.over and not held.done:
            # Its holder works on until it hears of it: the key must not start here meanwhile.
            self._ghosts.setdefault(lane.key, set()).add(held)
        if held is None and lane.records and _is_ready(lane.records[0]):
            self._background.start(self.unspend(lane.records[0]))

    def _lay_ghost(self, held: Held) -> None:
        """The holder of a record of a lost partition knows it, or had time to."""
        ghosts = self._ghosts.get(held.lane.key)
        if ghosts is None or held not in ghosts:
            return
        ghosts.discard(held)
        self._let_go(held)
        if not ghosts:
            del self._ghosts[held.lane.key]
            for holding in self._holdings.values():
                lane = holding.lanes.get(held.lane.key)
                if lane is not None:
                    self.line.offer(lane)


def _is_ready(record: Record) -> bool:
    """Whether a record was made ready, and so counted; work that goes on sees itself to that."""
    work = record.prepared
    if work is None or not work.done() or work.cancelled() or work.exception() is not None:
        return False
    return work.result() is not None
