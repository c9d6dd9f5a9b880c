"""Sessions and their ledgers in a DynamoDB table."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

from turnline.errors import PayloadTooLargeError, StoreUnavailableError
from turnline.protocol import JsonObject, SessionKey, TurnRecord
from turnline.store.dynamodb import ledger as ledgers
from turnline.store.dynamodb.items import (
    EXPIRY,
    MAX_WRITE_BYTES,
    Item,
    Key,
    Value,
    expired,
    expiry,
    n,
    number,
    piece_name,
    text,
    whole,
)
from turnline.store.dynamodb.ledger import Ledger
from turnline.store.dynamodb.poll import Poll
from turnline.store.dynamodb.settle import Step, over, settle
from turnline.store.dynamodb.table import Conflict, Table, Write, puts
from turnline.store.encoding import (
    decode_outcome,
    decode_record,
    encode_outcome,
    encode_record,
)
from turnline.store.json_values import decode_object, encode_json
from turnline.store.ports import Begun, Busy, Cancelled, Claim, Done, New, Outcome, Session

_DAY = 86_400.0
# History and state are written to outlast the ledger, whose use refreshes them when they no longer
# do: an item of a session in use is written again once in about 1.5 TTLs.
_KEPT_TTLS = 3.0
_REFRESHED_TTLS = 1.5
_REFRESHES_AT_ONCE = 16
# No broker delivers a message again that is older.
_REDELIVERY_SECONDS = 15 * _DAY
_CANCEL_POLL_SECONDS = 1.0

# An end that is to be written: request id, and the text of its outcome.
End = tuple[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbSessionOptions:
    """Bounds of a DynamoDbSessionStore.

    Attributes:
        ttl: seconds a session is kept after its last use, rounded up to the next whole second.
        max_history_turns: turns of history given of a session; older ones give way.
        max_done_per_session: ended turns remembered per session; the oldest give way, and a
            redelivery of one of those would run again.
    """

    ttl: float
    max_history_turns: int = 1_000
    max_done_per_session: int = 1_000


class DynamoDbSessionStore:
    """A SessionStore that any number of processes share.

    Leases are compared by the clocks of those processes, which must agree within a fraction of
    a lease.  One that is ahead takes live claims over: the turn runs twice then, and is committed
    once.
    """

    def __init__(self, options: DynamoDbSessionOptions, table: Table) -> None:
        self._options = options
        self._table = table
        # An entry lives as long as somebody waits for a cancellation.
        self._polls: WeakValueDictionary[SessionKey, Poll] = WeakValueDictionary()

    async def begin_turn(self, key: SessionKey, request_id: str, *, lease: float) -> Begun:
        """Claim a session for a turn; then read its history, which nobody else may change."""
        name = ledgers.ledger_key(key.token)

        async def decide(item: Item | None, writer: str) -> Step[Done | Busy | Ledger]:
            clock = self._table.clock.time()
            now = int(clock * 1000)
            ledger, ends = _let_go_if_lapsed(self._known(item, writer), now)
            ended = dict(ends).get(request_id) or await self._ended(key, ledger, request_id)
            if ended is not None:
                step = self._step(item, name, ledger, writer, ends) if ends else ()
                return Step(Done(outcome=decode_outcome(ended)), step)
            if ledger.holder is not None:
                return Step(Busy(seconds=ledger.until / 1000 - clock))
            claimed = ledger.claimed(
                request_id,
                mark=writer,
                micros=int(clock * 1_000_000),
                until=int((clock + lease) * 1000),
            )
            return Step(claimed, self._step(item, name, claimed, writer, ends))

        found = await settle(self._table, name, decide)
        if not isinstance(found, Ledger):
            return found
        claim = Claim(
            key=key,
            request_id=request_id,
            fence=found.fence,
            attempt=found.attempts(request_id),
        )
        return New(claim=claim, session=await self._session(key, found))

    async def renew_turn(self, claim: Claim, *, lease: float) -> None:
        """Extend a live claim."""
        name = ledgers.ledger_key(claim.key.token)
        async with self._table.deadline():
            item = await self._extended(name, claim, lease)
        poll = self._polls.get(claim.key)
        if poll is not None and ledgers.from_item(item).told:
            poll.hurry()

    async def commit_turn(
        self, claim: Claim, outcome: Outcome, *, record: TurnRecord | None, state: JsonObject
    ) -> None:
        """End a turn in one transaction.

        Raises:
            PayloadTooLargeError: what changes is over the size of a transaction; nothing was
                written and the claim is still live.
        """
        end = b"%d:%b" % (claim.fence, encode_outcome(outcome))
        new_state = encode_json(state, name="state") if state else b""
        new_record = encode_record(record) if record is not None else None
        name = ledgers.ledger_key(claim.key.token)

        async def decide(item: Item | None, writer: str) -> Step[None]:
            ledger = self._known(item, writer)
            if ledger.held != claim.fence:
                ended = await self._ended(claim.key, ledger, claim.request_id)
                if ended is not None and decode_outcome(ended).fence == claim.fence:
                    return Step(None)
            ledger.check(claim.fence, int(self._table.clock.time() * 1000))
            values = []
            if ledger.state_hash != ledgers.hash_of(new_state):
                values.append((ledgers.state_name(ledger.born), new_state))
            if new_record is not None:
                values.append((ledgers.turn_name(ledger.born, ledger.turns), new_record))
                ledger = ledger.recorded()
            _check_size([end, *(content for _, content in values)])
            ledger = ledger.free().with_state(new_state)
            writes = self._step(item, name, ledger, writer, [(claim.request_id, end)])
            return Step(None, [*writes, *self._values(name.partition, values)])

        await settle(self._table, name, decide)

    async def abandon_turn(self, claim: Claim) -> None:
        """Give a claim up."""
        name = ledgers.ledger_key(claim.key.token)

        async def decide(item: Item | None, writer: str) -> Step[None]:
            ledger = self._known(item, writer)
            if ledger.held != claim.fence:
                return Step(None)
            ledger, ends = _let_go(ledger)
            return Step(None, self._step(item, name, ledger, writer, ends))

        await settle(self._table, name, decide)

    async def cancel_turn(self, key: SessionKey, request_id: str) -> Cancelled:
        """Ask that a turn stop."""
        name = ledgers.ledger_key(key.token)

        async def decide(item: Item | None, writer: str) -> Step[Cancelled]:
            known = self._known(item, writer)
            ledger, ends = _let_go_if_lapsed(known, int(self._table.clock.time() * 1000))
            ended = dict(ends).get(request_id) or await self._ended(key, ledger, request_id)
            if ended is not None:
                writes = self._step(item, name, ledger, writer, ends) if ends else ()
                return Step(Cancelled.DONE, writes)
            if ledger.holder == request_id:
                told = replace(ledger, told=True)
                again = known.told
                writes = () if again else self._step(item, name, told, writer, ends)
                return Step(Cancelled.RUNNING, writes)
            ends = [*ends, (request_id, _cancelled(ledger, request_id))]
            return Step(Cancelled.QUEUED, self._step(item, name, ledger, writer, ends))

        found = await settle(self._table, name, decide)
        poll = self._polls.get(key)
        if poll is not None:
            poll.hurry()
        return found

    async def wait_cancelled(self, claim: Claim) -> None:
        """Wait until the claim's turn is cancelled, through any outage."""
        poll = self._poll(claim.key)
        poll.hurry()
        judged: str | None = None
        while True:
            await poll.news(poll.version)
            item = poll.seen
            mark = text(item, "writer") if item is not None else None
            if mark == judged:
                continue
            try:
                if await self._is_cancelled(item, claim):
                    return
                judged = mark
            except StoreUnavailableError:
                pass

    async def check(self) -> None:
        """Return if the table answers."""
        await self._table.check()

    # --- reading --------------------------------------------------------------------------------

    def _known(self, item: Item | None, born: str) -> Ledger:
        """Give a session's ledger, or that of one that begins, if there is none or it expired."""
        if item is None:
            return Ledger(born=born)
        ledger = ledgers.from_item(item)
        if expired(item, self._table.clock.time()):
            return Ledger(born=born, fence=ledger.fence)
        return ledger

    async def _ended(self, key: SessionKey, ledger: Ledger, request_id: str) -> bytes | None:
        """Give the outcome of a turn that is remembered to have ended.

        The ledger was read before: an end that is written after this look breaks its mark.
        """
        if not ledger.ends:
            return None
        found = await self._table.value(key.token, ledgers.end_name(ledger.born, request_id))
        if found is None:
            return None
        value, item = found
        oldest = ledger.ends - self._options.max_done_per_session
        return value if number(item, "number") >= oldest else None

    async def _is_cancelled(self, item: Item | None, claim: Claim) -> bool:
        ledger = self._known(item, "")
        if ledger.held == claim.fence:
            return ledger.told
        ended = await self._ended(claim.key, ledger, claim.request_id)
        return ended is not None and decode_outcome(ended).fence == 0

    async def _session(self, key: SessionKey, ledger: Ledger) -> Session:
        token = key.token
        async with self._table.deadline():
            turns: Sequence[Item] = ()
            if ledger.turns:
                first = max(0, ledger.turns - self._options.max_history_turns)
                places = (first, ledger.turns)
                names = [ledgers.turn_name(ledger.born, place) for place in places]
                turns = await self._table.between(token, *names)
            await self._refresh(token, [(item["part"]["S"], item) for item in turns])
            state = await self._state(token, ledger)
        return Session(
            history=tuple(decode_record(record) for _, record, _ in whole(turns)),
            state=decode_object(state) if state else {},
        )

    async def _state(self, token: str, ledger: Ledger) -> bytes:
        name = ledgers.state_name(ledger.born)
        found = await self._table.value(token, name) if ledger.state_hash else None
        if found is None:
            return b""
        state, first = found
        places = range(number(first, "pieces"))
        await self._refresh(token, [(piece_name(name, place), first) for place in places])
        return state

    async def _refresh(self, token: str, items: Sequence[tuple[str, Item]]) -> None:
        """See to it that history and state outlast the ledger."""
        now, ttl = self._table.clock.time(), self._options.ttl
        soon = expiry(now, _REFRESHED_TTLS * ttl)
        short = [sort for sort, item in items if number(item, EXPIRY) < soon]
        try:
            for at in range(0, len(short), _REFRESHES_AT_ONCE):
                async with asyncio.TaskGroup() as tasks:
                    for sort in short[at : at + _REFRESHES_AT_ONCE]:
                        tasks.create_task(self._prolong(Key(token, sort), now))
        except* StoreUnavailableError as errors:
            raise StoreUnavailableError("The store did not answer in time") from errors

    async def _prolong(self, key: Key, now: float) -> None:
        # One that is gone is not to come back as an empty one.
        with suppress(Conflict):
            await self._table.update(
                key,
                "SET #e = :e",
                condition="attribute_exists(#e)",
                names={"#e": EXPIRY},
                values={":e": n(expiry(now, _KEPT_TTLS * self._options.ttl))},
            )

    def _poll(self, key: SessionKey) -> Poll:
        poll = self._polls.get(key)
        if poll is None:
            name = ledgers.ledger_key(key.token)
            poll = self._polls[key] = Poll(
                lambda: self._table.look(name), self._table.clock, longest=_CANCEL_POLL_SECONDS
            )
        return poll

    # --- writing --------------------------------------------------------------------------------

    async def _extended(self, name: Key, claim: Claim, lease: float) -> Item:
        tries = 0
        while True:
            try:
                return await self._extend(name, claim, lease)
            except Conflict:
                now = int(self._table.clock.time() * 1000)
                self._known(await self._table.get(name), "").check(claim.fence, now)
            # It holds after all: somebody was at the item in that moment.
            await self._table.pause(tries)
            tries += 1

    async def _extend(self, name: Key, claim: Claim, lease: float) -> Item:
        now = self._table.clock.time()
        return await self._table.update(
            name,
            "SET #until = :until, #writer = :writer, #expiry = :expiry",
            condition="#fence = :fence AND #until > :now",
            names={
                "#until": "until",
                "#writer": "writer",
                "#expiry": EXPIRY,
                "#fence": "fence",
            },
            values={
                ":until": n(int((now + lease) * 1000)),
                ":writer": {"S": self._table.new_id()},
                ":expiry": n(expiry(now, max(lease, self._options.ttl))),
                ":fence": n(claim.fence),
                ":now": n(int(now * 1000)),
            },
        )

    def _step(
        self, seen: Item | None, name: Key, ledger: Ledger, writer: str, ends: Sequence[End]
    ) -> Sequence[Write]:
        """Write a ledger and ends of turns, which are counted in."""
        now = self._table.clock.time()
        kept = max(_KEPT_TTLS * self._options.ttl, _REDELIVERY_SECONDS)
        writes: list[Write] = []
        for request_id, end in ends:
            attributes = {"number": n(ledger.ends), EXPIRY: n(expiry(now, kept))}
            value = Value(ledgers.end_name(ledger.born, request_id), end, attributes)
            writes += puts(name.partition, value)
            ledger = ledger.ended(request_id)
        lease = ledger.until / 1000 - now
        expires = expiry(now, max(lease, self._options.ttl))
        item = ledgers.to_item(ledger, writer=writer, expires=expires)
        return [over(seen, name, item), *writes]

    def _values(self, token: str, values: Sequence[tuple[str, bytes]]) -> Sequence[Write]:
        expires = expiry(self._table.clock.time(), _KEPT_TTLS * self._options.ttl)
        return [
            write
            for name, content in values
            for write in puts(token, Value(name, content, {EXPIRY: n(expires)}))
        ]


def _let_go_if_lapsed(ledger: Ledger, now: int) -> tuple[Ledger, Sequence[End]]:
    if ledger.holder is None or ledger.until > now:
        return ledger, ()
    return _let_go(ledger)


def _let_go(ledger: Ledger) -> tuple[Ledger, Sequence[End]]:
    """Free the session; a turn whose cancellation was asked for is not tried again."""
    holder = ledger.holder
    if holder is None or not ledger.told:
        return ledger.free(), ()
    return ledger.free(), [(holder, _cancelled(ledger, holder))]


def _cancelled(ledger: Ledger, request_id: str) -> bytes:
    """Give the outcome of a turn that was cancelled while nobody ran it."""
    return b"0:%d" % ledger.attempts(request_id)


def _check_size(contents: Sequence[bytes]) -> None:
    if sum(map(len, contents)) > MAX_WRITE_BYTES:
        raise PayloadTooLargeError(
            "The turn is too large to be kept: its reply, record and state together",
            limit_bytes=MAX_WRITE_BYTES,
            field="",
        )
