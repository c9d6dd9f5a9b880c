"""One session's ledger as a plain state machine: no clock, no lock, no await.

Readings of the clock and fences come in as arguments.  A claim is live while it is the session's
newest and its lease has not run out; everything else follows from that.
"""

import asyncio
from collections import OrderedDict, deque
from dataclasses import dataclass, replace

from turnline.errors import FencedError, TurnCancelledError
from turnline.protocol import ChatReply, Failure, JsonObject, SessionKey, TurnRecord
from turnline.store.json_values import decode_array, decode_object, encode_json
from turnline.store.ports import Begun, Busy, Cancelled, Claim, Done, New, Outcome, Session


@dataclass(slots=True)
class _Held:
    """The newest claim while its turn has not ended."""

    claim: Claim
    until: float
    cancel: asyncio.Event


@dataclass(frozen=True, slots=True)
class _Packed:
    """A turn of the history with items, these as text so that each reader gets its own."""

    record: TurnRecord
    items: bytes


class SessionLedger:
    """History, state and ledger of one session.

    Attributes:
        touched: clock reading of the last use; for the store's expiry.
    """

    __slots__ = (
        "_attempts",
        "_done",
        "_held",
        "_history",
        "_key",
        "_max_done",
        "_state",
        "touched",
    )

    def __init__(self, key: SessionKey, *, max_history: int, max_done: int, now: float) -> None:
        self.touched = now
        self._key = key
        self._max_done = max_done
        self._history: deque[TurnRecord | _Packed] = deque(maxlen=max_history)
        self._state = b""
        self._held: _Held | None = None
        # Ended turns, each with the fence it was committed under (0: cancelled before it began).
        self._done: OrderedDict[str, tuple[int, Outcome]] = OrderedDict()
        # Claims so far of turns that have not ended.
        self._attempts: OrderedDict[str, int] = OrderedDict()

    def live(self, now: float) -> bool:
        """Whether a runner holds the session."""
        return self._held is not None and self._held.until > now

    def begin(self, request_id: str, *, fence: int, lease: float, now: float) -> Begun:
        """Claim the session under `fence`, which must be above every earlier one."""
        self._let_go_expired(now)
        done = self._done.get(request_id)
        if done is not None:
            return Done(outcome=done[1])
        if self._held is not None:
            return Busy(seconds=self._held.until - now)
        attempt = self._attempts.pop(request_id, 0) + 1
        self._attempts[request_id] = attempt
        if len(self._attempts) > self._max_done:
            self._attempts.popitem(last=False)
        claim = Claim(key=self._key, request_id=request_id, fence=fence, attempt=attempt)
        self._held = _Held(claim, now + lease, asyncio.Event())
        return New(claim=claim, session=self._session())

    def renew(self, claim: Claim, *, lease: float, now: float) -> None:
        """Extend a live claim, or raise FencedError."""
        self._live_claim(claim, now).until = now + lease

    def commit(
        self,
        claim: Claim,
        outcome: Outcome,
        *,
        record: TurnRecord | None,
        state: JsonObject,
        now: float,
    ) -> None:
        """End a turn; FencedError and ValueError leave everything as it was."""
        done = self._done.get(claim.request_id)
        if done is not None and done[0] == claim.fence:
            return
        self._live_claim(claim, now)
        packed = encode_json(state, name="state") if state else b""
        kept = _pack(record) if record is not None else None
        ended = _without_aliases(outcome)
        self._state = packed
        if kept is not None:
            self._history.append(kept)
        self._end(claim.request_id, claim.fence, ended)
        self._held = None

    def abandon(self, claim: Claim) -> None:
        """Give a claim up if it is still the newest."""
        if self._held is not None and self._held.claim.fence == claim.fence:
            self._let_go(self._held)

    def cancel(self, request_id: str, *, now: float) -> Cancelled:
        """Tell the turn's runner, or see to it that the turn never begins."""
        held = self._held
        mine = held is not None and held.claim.request_id == request_id
        self._let_go_expired(now)
        if held is not None and mine:
            # Told even if its lease ran out: it may still be at it, at somebody's cost.
            held.cancel.set()
        if request_id in self._done:
            return Cancelled.DONE
        if self._held is not None and mine:
            return Cancelled.RUNNING
        self._end_cancelled(request_id)
        return Cancelled.QUEUED

    def cancel_event(self, claim: Claim) -> asyncio.Event | None:
        """Give what is set when the claim's turn is cancelled; None if a newer claim exists."""
        held = self._held
        return held.cancel if held is not None and held.claim.fence == claim.fence else None

    def _live_claim(self, claim: Claim, now: float) -> _Held:
        held = self._held
        if held is None or held.claim.fence != claim.fence:
            raise FencedError("This claim is not the session's newest")
        if held.until <= now:
            raise FencedError("The lease of this claim ran out")
        return held

    def _let_go_expired(self, now: float) -> None:
        if self._held is not None and self._held.until <= now:
            self._let_go(self._held)

    def _let_go(self, held: _Held) -> None:
        """Free the session; a turn whose cancellation was asked for is not tried again."""
        self._held = None
        if held.cancel.is_set():
            self._end_cancelled(held.claim.request_id)

    def _end_cancelled(self, request_id: str) -> None:
        if request_id in self._done:
            return
        failure = Failure.from_error(TurnCancelledError())
        outcome = Outcome(
            payload=failure,
            status_code=failure.status_code,
            attempt=self._attempts.get(request_id, 0),
            fence=0,
        )
        self._end(request_id, 0, outcome)

    def _end(self, request_id: str, fence: int, outcome: Outcome) -> None:
        self._attempts.pop(request_id, None)
        self._done[request_id] = (fence, outcome)
        if len(self._done) > self._max_done:
            self._done.popitem(last=False)

    def _session(self) -> Session:
        return Session(
            history=tuple([_unpack(kept) for kept in self._history]),
            state=decode_object(self._state) if self._state else {},
        )


def _pack(record: TurnRecord) -> TurnRecord | _Packed:
    if not record.items:
        return record
    items = encode_json(record.items, name="items")
    return _Packed(replace(record, items=()), items)


def _unpack(kept: TurnRecord | _Packed) -> TurnRecord:
    if isinstance(kept, TurnRecord):
        return kept
    return replace(kept.record, items=tuple(decode_array(kept.items)))


def _without_aliases(outcome: Outcome) -> Outcome:
    payload = outcome.payload
    if not isinstance(payload, ChatReply) or not payload.extra:
        return outcome
    extra = decode_object(encode_json(payload.extra, name="extra"))
    return replace(outcome, payload=replace(payload, extra=extra))
