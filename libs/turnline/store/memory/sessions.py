"""Sessions and their ledgers, kept in this process.

Everything happens between two awaits, so each method is atomic.  The sessions stand in the order
of their last use; what is too old or too many goes from the front, a session with a live claim
goes to the back instead.
"""

import asyncio
import itertools
from collections import OrderedDict
from dataclasses import dataclass

from turnline.errors import FencedError
from turnline.protocol import JsonObject, SessionKey, TurnRecord
from turnline.protocol.clock import Clock
from turnline.store.memory.ledger import SessionLedger
from turnline.store.ports import Begun, Cancelled, Claim, Outcome

# Sessions looked at per new one when there are too many: more than one, so that a backlog left by
# live claims goes down again, and few, so that no call is slow.
_LOOKS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySessionOptions:
    """Bounds of a MemorySessionStore; each at least 1.

    Attributes:
        ttl: seconds a session is kept after its last use.
        max_sessions: sessions kept; over it the one longest unused gives way.  One with a live
            claim never does, so there can be more while that many are live.
        max_history_turns: turns of history kept per session; the oldest give way.
        max_done_per_session: ended turns remembered per session; the oldest give way, and a
            redelivery of one of those would run again.
    """

    ttl: float = 604_800.0
    max_sessions: int = 20_000
    max_history_turns: int = 1_000
    max_done_per_session: int = 1_000


class MemorySessionStore:
    """A SessionStore that lives and ends with its process."""

    def __init__(self, options: MemorySessionOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._sessions: OrderedDict[SessionKey, SessionLedger] = OrderedDict()
        # One counter for all sessions: a fence stays unique when its session was evicted.
        self._fences = itertools.count(1)

    @property
    def size(self) -> int:
        """How many sessions are kept now."""
        return len(self._sessions)

    async def begin_turn(self, key: SessionKey, request_id: str, *, lease: float) -> Begun:
        """Claim a session for a turn."""
        now = self._clock.monotonic()
        ledger = self._find(key, now) or self._create(key, now)
        return ledger.begin(request_id, fence=next(self._fences), lease=lease, now=now)

    async def renew_turn(self, claim: Claim, *, lease: float) -> None:
        """Extend a live claim."""
        now = self._clock.monotonic()
        self._of(claim, now).renew(claim, lease=lease, now=now)

    async def commit_turn(
        self, claim: Claim, outcome: Outcome, *, record: TurnRecord | None, state: JsonObject
    ) -> None:
        """End a turn in one step."""
        now = self._clock.monotonic()
        self._of(claim, now).commit(claim, outcome, record=record, state=state, now=now)

    async def abandon_turn(self, claim: Claim) -> None:
        """Give a claim up."""
        ledger = self._find(claim.key, self._clock.monotonic())
        if ledger is not None:
            ledger.abandon(claim)

    async def cancel_turn(self, key: SessionKey, request_id: str) -> Cancelled:
        """Ask that a turn stop."""
        now = self._clock.monotonic()
        ledger = self._find(key, now) or self._create(key, now)
        return ledger.cancel(request_id, now=now)

    async def wait_cancelled(self, claim: Claim) -> None:
        """Wait until the claim's turn is cancelled."""
        ledger = self._find(claim.key, self._clock.monotonic())
        event = ledger.cancel_event(claim) if ledger is not None else None
        await (event or asyncio.Event()).wait()

    def _of(self, claim: Claim, now: float) -> SessionLedger:
        ledger = self._find(claim.key, now)
        if ledger is None:
            raise FencedError("This claim is not the session's newest")
        return ledger

    def _find(self, key: SessionKey, now: float) -> SessionLedger | None:
        self._expire(now)
        ledger = self._sessions.get(key)
        if ledger is not None:
            self._touch(key, ledger, now)
        return ledger

    def _create(self, key: SessionKey, now: float) -> SessionLedger:
        excess = len(self._sessions) + 1 - self._options.max_sessions
        for _ in range(_LOOKS):
            if excess <= 0:
                break
            excess -= self._drop_oldest(now)
        ledger = self._sessions[key] = SessionLedger(
            key,
            max_history=self._options.max_history_turns,
            max_done=self._options.max_done_per_session,
            now=now,
        )
        return ledger

    def _expire(self, now: float) -> None:
        limit = now - self._options.ttl
        while self._sessions and next(iter(self._sessions.values())).touched <= limit:
            self._drop_oldest(now)

    def _drop_oldest(self, now: float) -> bool:
        """Forget the session longest unused, or move it to the back if it is live."""
        if not self._sessions:
            return False
        key, ledger = next(iter(self._sessions.items()))
        if ledger.live(now):
            self._touch(key, ledger, now)
            return False
        del self._sessions[key]
        return True

    def _touch(self, key: SessionKey, ledger: SessionLedger, now: float) -> None:
        ledger.touched = now
        self._sessions.move_to_end(key)
