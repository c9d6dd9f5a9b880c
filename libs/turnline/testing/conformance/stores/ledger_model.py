"""The ledger against a model of it, over any run of calls.

The model is the port's promises in the plainest form: no leases as times (a claim lapses when the
case says that time passes), no bounds, no concurrency.
"""

from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnline.errors import FencedError
from turnline.store import Busy, Cancelled, Claim, Done, New, SessionStore
from turnline.testing.conformance.stores.harness import SessionHarness, SessionLimits, StoreTime
from turnline.testing.conformance.stores.ledger_rig import (
    KEY,
    LEASE,
    SessionCases,
    commit,
    is_cancelled,
    told,
)


@dataclass(frozen=True, slots=True)
class Begin:
    """A delivery of turn `turn` comes."""

    turn: int


@dataclass(frozen=True, slots=True)
class Commit:
    """The runner of the claim given `back` claims ago commits."""

    back: int


@dataclass(frozen=True, slots=True)
class Renew:
    """The runner of the claim given `back` claims ago renews it."""

    back: int


@dataclass(frozen=True, slots=True)
class Abandon:
    """The runner of the claim given `back` claims ago gives it up."""

    back: int


@dataclass(frozen=True, slots=True)
class Cancel:
    """A caller cancels turn `turn`."""

    turn: int


@dataclass(frozen=True, slots=True)
class Lapse:
    """Time passes until every lease has run out."""


Step = Begin | Commit | Renew | Abandon | Cancel | Lapse

_TURNS = st.integers(0, 2)
# Mostly the newest claim, now and then a zombie's.
_BACK = st.sampled_from([0, 0, 0, 1, 2])
STEPS = st.lists(
    st.one_of(
        st.builds(Begin, _TURNS),
        st.builds(Commit, _BACK),
        st.builds(Renew, _BACK),
        st.builds(Abandon, _BACK),
        st.builds(Cancel, _TURNS),
        st.just(Lapse()),
    ),
    min_size=15,  # or most runs are too short for four calls to meet
    max_size=60,
)


@dataclass(slots=True)
class Model:
    """What the session should be."""

    history: list[tuple[str, str]] = field(default_factory=list)
    state: int = 0
    done: dict[str, int] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)
    live: Claim | None = None
    told: bool = False

    def release(self) -> None:
        """End the live claim without an outcome."""
        if self.live is not None and self.told:
            self.done[self.live.request_id] = 0
        self.live, self.told = None, False


class LedgerRun:
    """Takes each step in the store and in the model, and compares."""

    def __init__(self, store: SessionStore, time: StoreTime) -> None:
        self._store = store
        self._time = time
        self._lease = LEASE * time.tick
        self._model = Model()

    async def take(self, step: Step) -> None:
        """Take one step."""
        match step:
            case Begin(turn=turn):
                await self._begin(f"t{turn}")
            case Cancel(turn=turn):
                await self._cancel(f"t{turn}")
            case Lapse():
                await self._time.pass_ticks(LEASE + 1)
                self._model.release()
            case Commit(back=back) | Renew(back=back) | Abandon(back=back):
                if back < len(self._model.claims):
                    await self._settle(step, self._model.claims[-1 - back])

    async def _begin(self, turn: str) -> None:
        model = self._model
        begun = await self._store.begin_turn(KEY, turn, lease=self._lease)
        if turn in model.done:
            assert isinstance(begun, Done)
            assert is_cancelled(begun) == (model.done[turn] == 0)
            assert begun.outcome.fence == model.done[turn]
        elif model.live is not None:
            assert isinstance(begun, Busy)
        else:
            assert isinstance(begun, New)
            self._check_new(begun, turn)

    def _check_new(self, begun: New, turn: str) -> None:
        model, claim = self._model, begun.claim
        model.attempts[turn] = model.attempts.get(turn, 0) + 1
        assert claim.attempt == model.attempts[turn]
        assert all(claim.fence > earlier.fence for earlier in model.claims)
        assert told(begun.session) == model.history
        assert begun.session.state.get("fence", 0) == model.state
        model.claims.append(claim)
        model.live = claim

    async def _cancel(self, turn: str) -> None:
        model = self._model
        found = await self._store.cancel_turn(KEY, turn)
        if turn in model.done:
            assert found is Cancelled.DONE
        elif model.live is not None and model.live.request_id == turn:
            assert found is Cancelled.RUNNING
            model.told = True
        else:
            assert found is Cancelled.QUEUED
            model.done[turn] = 0

    async def _settle(self, step: Commit | Renew | Abandon, claim: Claim) -> None:
        model = self._model
        committed = model.done.get(claim.request_id) == claim.fence
        live = claim == model.live
        try:
            await self._call(step, claim)
        except FencedError:
            assert not live
            assert not isinstance(step, Abandon)
            assert not (isinstance(step, Commit) and committed)
            return
        if isinstance(step, Renew):
            assert live
        elif isinstance(step, Commit):
            assert live or committed
            if live:
                self._ended(claim)
        elif live:
            model.release()

    async def _call(self, step: Commit | Renew | Abandon, claim: Claim) -> None:
        if isinstance(step, Commit):
            await commit(self._store, claim, str(claim.fence), state={"fence": claim.fence})
        elif isinstance(step, Renew):
            await self._store.renew_turn(claim, lease=self._lease)
        else:
            await self._store.abandon_turn(claim)

    def _ended(self, claim: Claim) -> None:
        model = self._model
        model.history.append((claim.request_id, str(claim.fence)))
        model.state = claim.fence
        model.done[claim.request_id] = claim.fence
        model.live, model.told = None, False


class ModelCases(SessionCases):
    """One case: any run of calls."""

    @settings(
        deadline=None,
        suppress_health_check=[
            HealthCheck.function_scoped_fixture,  # each example opens a store of its own
            HealthCheck.differing_executors,  # one suite, several adapters
            HealthCheck.too_slow,
        ],
    )
    @given(steps=STEPS)
    async def test_any_run_of_calls_agrees_with_the_model(
        self, harness: SessionHarness, steps: list[Step]
    ) -> None:
        async with harness.open(SessionLimits()) as store:
            run = LedgerRun(store, harness.time)
            for step in steps:
                await run.take(step)
