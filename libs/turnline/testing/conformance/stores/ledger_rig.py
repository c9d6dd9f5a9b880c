"""The words the cases of SessionStore are written in."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from turnline.errors import RetryHint
from turnline.protocol import ChatReply, Failure, SessionKey, TurnRecord
from turnline.store import Begun, Busy, Claim, Done, New, Outcome, Session, SessionStore
from turnline.testing.conformance.stores.harness import (
    SessionHarness,
    SessionLimits,
    StoreTime,
    expect_declared_differences,
)

KEY = SessionKey("", "s1")
# Seconds; for cases in which no lease runs out.
LONG = 600.0
# Ticks; for cases in which one does.
LEASE = 10.0


def outcome(claim: Claim, text: str = "hello") -> Outcome:
    """Make the good end of a claim."""
    return Outcome(
        payload=ChatReply(result=text), status_code=200, attempt=claim.attempt, fence=claim.fence
    )


def failure_outcome(claim: Claim) -> Outcome:
    """Make the bad end of a claim."""
    failure = Failure(
        code="agent_failed",
        message="Es ging nicht",
        status_code=503,
        retry=RetryHint.AFTER,
        retry_after=2.5,
        field="prompt",
    )
    return Outcome(
        payload=failure,
        status_code=503,
        attempt=claim.attempt,
        fence=claim.fence,
        chunk_count=7,
    )


def record(request_id: str, reply: str = "hello", *items: Mapping[str, Any]) -> TurnRecord:
    """Make what the history keeps of a turn."""
    return TurnRecord(
        request_id=request_id, prompt="hi", reply=reply, agent="a", at=1.5, items=items
    )


async def begin(
    store: SessionStore, request_id: str, *, key: SessionKey = KEY, lease: float = LONG
) -> New:
    """Claim the session for a turn; it must be free."""
    begun = await store.begin_turn(key, request_id, lease=lease)
    assert isinstance(begun, New), begun
    return begun


async def commit(
    store: SessionStore,
    claim: Claim,
    text: str = "hello",
    *,
    state: Mapping[str, Any] | None = None,
) -> None:
    """End a turn well, with history."""
    await store.commit_turn(
        claim, outcome(claim, text), record=record(claim.request_id, text), state=state or {}
    )


async def run_turn(
    store: SessionStore,
    request_id: str,
    text: str = "hello",
    *,
    key: SessionKey = KEY,
    state: Mapping[str, Any] | None = None,
) -> Claim:
    """Begin a turn and end it well."""
    begun = await begin(store, request_id, key=key)
    await commit(store, begun.claim, text, state=state)
    return begun.claim


async def look(store: SessionStore, *, key: SessionKey = KEY) -> Session:
    """Read a free session as its next turn would, leaving it free."""
    begun = await begin(store, "look", key=key)
    await store.abandon_turn(begun.claim)
    return begun.session


def told(session: Session) -> list[tuple[str, str]]:
    """Shorten a history to ids and replies."""
    return [(turn.request_id, turn.reply) for turn in session.history]


def kinds(begun: list[Begun]) -> dict[str, int]:
    """Count what several calls of `begin_turn` gave."""
    return {
        name: sum(isinstance(each, kind) for each in begun)
        for name, kind in (("new", New), ("done", Done), ("busy", Busy))
    }


def is_cancelled(begun: Begun) -> bool:
    """Whether a turn is over because it was cancelled."""
    if not isinstance(begun, Done) or not isinstance(begun.outcome.payload, Failure):
        return False
    return begun.outcome.payload.code == "turn_cancelled" and begun.outcome.status_code == 499


class SessionCases:
    """What every case of SessionStore is given.

    `store` is fresh; `other` is what another process would see of it.
    """

    @pytest.fixture
    def harness(self) -> SessionHarness:
        """The adapter's; override it."""
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def declared_differences(self, request: pytest.FixtureRequest, harness: SessionHarness) -> None:
        """Expect failure where the adapter declares it."""
        expect_declared_differences(request, harness.differences)

    @pytest.fixture
    def time(self, harness: SessionHarness) -> StoreTime:
        """The store's time."""
        return harness.time

    @pytest.fixture
    async def store(self, harness: SessionHarness) -> AsyncIterator[SessionStore]:
        """A store with wide limits."""
        async with harness.open(SessionLimits()) as store:
            yield store

    @pytest.fixture
    async def other(
        self, harness: SessionHarness, store: SessionStore
    ) -> AsyncIterator[SessionStore]:
        """The same data from another process."""
        async with harness.peer(store) as other:
            yield other
