"""One turn: claim it, run the agent, commit, publish.

The order of these steps is the product's promise (ARCHITECTURE, guarantee 2): nothing is published
that is not committed, nothing committed is run again, and a crash between any two steps is repaired
by the next delivery, which finds the ledger's outcome and publishes it again.

Knows transports and stores by their ports; knows no broker, web framework or environment.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar, assert_never

from turnline.agent import AgentRegistry
from turnline.errors import (
    AgentFailedError,
    Code,
    FencedError,
    InternalError,
    PayloadTooLargeError,
    QueueFullError,
    StoreUnavailableError,
    TransportUnavailableError,
    TurnDeadlineExceededError,
    TurnlineError,
)
from turnline.hosting import Backoff, LeaseKeeper, alongside
from turnline.protocol import ChatRequest, Envelope, Failure
from turnline.protocol.clock import Clock
from turnline.protocol.deadline import within
from turnline.runner.attempt import (
    Attempt,
    Ended,
    GaveUp,
    Result,
    TryAgain,
    broken_contract,
    refusal,
)
from turnline.runner.publish import Publisher
from turnline.runner.signals import RunnerSignals
from turnline.store import Busy, Claim, Done, New, Outcome, SessionStore
from turnline.telemetry import get_logger
from turnline.transport import Ack, Bury, Delivery, Release, Retry, Settlement

_log = get_logger("runner")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerOptions:
    """Bounds of a runner.

    Attributes:
        max_attempts: deliveries after which a failing turn is given up (`max_receive_count`).
        lease_seconds: how long a dead runner's session stays claimed (`session.lease`).
        turn_timeout: seconds a turn may take when its envelope names no deadline.
        store_timeout: seconds to wait for one answer of the session store.
        throttle_pause: seconds to wait on a provider's rate limit that names no time.
    """

    max_attempts: int
    lease_seconds: float
    turn_timeout: float
    store_timeout: float = 5.0
    throttle_pause: float = 1.0


class TurnHandler:
    """Handles deliveries of the input queue; one instance per process, many calls at once."""

    def __init__(
        self,
        *,
        agents: AgentRegistry,
        sessions: SessionStore,
        publisher: Publisher,
        keeper: LeaseKeeper,
        clock: Clock,
        signals: RunnerSignals,
        options: RunnerOptions,
    ) -> None:
        self._agents = agents
        self._sessions = sessions
        self._publisher = publisher
        self._keeper = keeper
        self._clock = clock
        self._signals = signals
        self._options = options

    async def __call__(self, delivery: Delivery) -> Settlement:
        """Run or replay one turn and say what becomes of its delivery.

        Cancellation (drain) gives the claim back and leaves the delivery to the caller.
        """
        envelope = delivery.envelope
        if not isinstance(envelope.payload, ChatRequest):
            return Bury("the message is no chat request", Code.UNDECODABLE)
        with self._signals.attempt(envelope, delivery.attempt):
            return await self._handle(delivery, envelope.payload)

    async def _handle(self, delivery: Delivery, request: ChatRequest) -> Settlement:
        envelope = delivery.envelope
        give_up_at = self._give_up_at(envelope)
        while True:
            begun = await self._begin(envelope, give_up_at)
            match begun:
                case Done(outcome=outcome):
                    _log.info("turn.replayed")
                    self._signals.result("replayed")
                    return await self._publish(envelope, outcome)
                case Busy():
                    return await self._give_up(delivery, TurnDeadlineExceededError())
                case New():
                    self._signals.claimed(envelope)
                    settlement = await self._attempt(delivery, request, begun, give_up_at)
                    if settlement is not None:
                        return settlement
                case _:
                    assert_never(begun)

    def _give_up_at(self, envelope: Envelope) -> float:
        """The turn's deadline on the loop's clock."""
        left = self._options.turn_timeout
        if envelope.deadline:
            left = envelope.deadline - self._clock.time()
            if envelope.enqueued_at:
                # Wall clocks jump and differ; nobody gets more time than was allowed.
                left = min(left, envelope.deadline - envelope.enqueued_at)
        return asyncio.get_running_loop().time() + left

    async def _begin(self, envelope: Envelope, give_up_at: float) -> New | Done | Busy:
        """Claim the session, waiting out a live claim or a store that is away.

        Busy only when the deadline came first.
        """
        failures = 0
        while True:
            try:
                begun = await self._in_time(
                    self._sessions.begin_turn(
                        envelope.session_key, envelope.request_id, lease=self._options.lease_seconds
                    )
                )
            except (StoreUnavailableError, TimeoutError):
                failures += 1
                self._signals.retry("store")
                _log.warning("dependency.unavailable", dependency="session store")
                begun = Busy(seconds=Backoff(base=0.05, cap=2.0).pause(failures))
            left = _seconds_until(give_up_at)
            if not isinstance(begun, Busy) or left <= 0:
                return begun
            await asyncio.sleep(min(begun.seconds + 0.001, left))

    async def _attempt(
        self, delivery: Delivery, request: ChatRequest, begun: New, give_up_at: float
    ) -> Settlement | None:
        """Make one attempt; None when another may follow at once (a provider's rate limit)."""
        claim, lease = begun.claim, self._options.lease_seconds
        try:
            async with self._keeper.held(
                lambda: self._sessions.renew_turn(claim, lease=lease), seconds=lease
            ):
                result = await self._run_and_keep(delivery, request, begun, give_up_at)
        except FencedError:
            # Spends an attempt: an agent that loses its lease each time must not run for ever.
            _log.warning("turn.fenced", fence=claim.fence)
            self._signals.result("fenced")
            return Retry()
        except (TransportUnavailableError, QueueFullError):
            await self._abandon(claim)
            self._signals.result("released")
            self._signals.retry("transport")
            return Release()
        except BaseException:
            await asyncio.shield(self._abandon(claim))
            self._signals.result("released")
            raise
        match result:
            case Ended():
                outcome = _outcome(claim, result)
                self._note_end(outcome)
                return await self._publish(delivery.envelope, outcome)
            case GaveUp(error=error):
                await self._abandon(claim)
                return await self._give_up(delivery, error, claimed=claim.attempt)
            case TryAgain():
                await self._abandon(claim)
                return await self._again(delivery, claim, result, give_up_at)
            case _:
                assert_never(result)

    async def _run_and_keep(
        self, delivery: Delivery, request: ChatRequest, begun: New, give_up_at: float
    ) -> Result:
        """Do what needs the claim: run the agent and commit its end, or wait out a rate limit."""
        result = await self._run(delivery, request, begun, give_up_at)
        if isinstance(result, Ended):
            with self._signals.commit(delivery.envelope):
                return await self._commit_or_refuse(delivery.envelope, begun, result)
        if isinstance(result, TryAgain) and not result.spends_attempt:
            await self._wait_out(begun.claim, result, give_up_at)
        return result

    async def _run(
        self, delivery: Delivery, request: ChatRequest, begun: New, give_up_at: float
    ) -> Result:
        left = _seconds_until(give_up_at)
        if left <= 0:
            return GaveUp(error=TurnDeadlineExceededError())
        if delivery.attempt > self._options.max_attempts:
            # Its runner died on every attempt, so nobody was left to answer.
            return GaveUp(error=self._exhausted())
        attempt = Attempt(
            envelope=delivery.envelope,
            request=request,
            begun=begun,
            agents=self._agents,
            sessions=self._sessions,
            publisher=self._publisher,
            clock=self._clock,
            signals=self._signals,
        )
        return await attempt.run(left)

    def _note_end(self, outcome: Outcome) -> None:
        self._signals.result("ended")
        self._signals.ended(outcome)
        _log.info("turn.committed", status_code=outcome.status_code, chunks=outcome.chunk_count)

    async def _again(
        self, delivery: Delivery, claim: Claim, result: TryAgain, give_up_at: float
    ) -> Settlement | None:
        if not result.spends_attempt:
            self._signals.result("throttled")
            self._signals.retry("throttled")
            return None
        if delivery.attempt >= self._options.max_attempts:
            return await self._give_up(delivery, self._exhausted(), claimed=claim.attempt)
        self._signals.result("retry")
        self._signals.retry("agent")
        left = _seconds_until(give_up_at)
        return Retry(None if result.after is None else min(left, result.after))

    async def _wait_out(self, claim: Claim, result: TryAgain, give_up_at: float) -> None:
        """Wait for a provider, no longer than the turn's deadline or until it is cancelled.

        The session stays claimed meanwhile, so that a cancel finds somebody to tell.
        """
        cancelled = asyncio.Event()

        async def watch() -> None:
            await self._sessions.wait_cancelled(claim)
            cancelled.set()

        pause = self._options.throttle_pause if result.after is None else result.after
        with suppress(TimeoutError):
            async with alongside(watch), asyncio.timeout(min(_seconds_until(give_up_at), pause)):
                await cancelled.wait()

    def _exhausted(self) -> AgentFailedError:
        return AgentFailedError(
            f"Failed to process message after {self._options.max_attempts} retries"
        )

    async def _commit_or_refuse(self, envelope: Envelope, begun: New, ended: Ended) -> Ended:
        """Commit; an end that cannot be sent (too large) or kept (no JSON) ends the turn failed.

        Returns:
            What was committed.
        """
        claim, state = begun.claim, begun.session.state
        try:
            self._publisher.check_size(envelope, _outcome(claim, ended))
            await self._commit(claim, ended)
        except PayloadTooLargeError as error:
            ended = ended.refused(Failure.from_error(error), state=state)
            await self._commit(claim, ended)
        except ValueError as error:
            ended = ended.refused(refusal(broken_contract(error)), state=state)
            await self._commit(claim, ended)
        return ended

    async def _commit(self, claim: Claim, ended: Ended) -> None:
        """Commit, trying again while the lease is alive; the keeper ends this when it is not."""
        outcome = _outcome(claim, ended)
        failures = 0
        while True:
            try:
                await self._in_time(
                    self._sessions.commit_turn(
                        claim, outcome, record=ended.record, state=ended.state
                    )
                )
                return
            except (StoreUnavailableError, TimeoutError):
                failures += 1
                self._signals.retry("store")
                _log.warning("dependency.unavailable", dependency="session store")
                await asyncio.sleep(Backoff(base=0.05, cap=1.0).pause(failures))

    async def _publish(self, envelope: Envelope, outcome: Outcome) -> Settlement:
        """Publish what the ledger holds; on failure hand back, so that it is replayed."""
        try:
            with self._signals.publish(envelope):
                await self._publish_or_explain(envelope, outcome)
        except (TransportUnavailableError, QueueFullError):
            _log.error("turn.unpublished")
            self._signals.retry("transport")
            return Release()
        return Ack()

    async def _publish_or_explain(self, envelope: Envelope, outcome: Outcome) -> None:
        try:
            await self._publisher.outcome(envelope, outcome)
        except PayloadTooLargeError as error:
            # The turn is committed and must not run again; its caller learns why there is no text.
            failure = Failure.from_error(error)
            await self._publisher.outcome(
                envelope, replace(outcome, payload=failure, status_code=failure.status_code)
            )

    async def _give_up(
        self, delivery: Delivery, error: TurnlineError, *, claimed: int = 0
    ) -> Settlement:
        """Answer with a failure and keep the message as a dead letter.

        Args:
            claimed: the attempt that the claim counts and its pieces named, which is above the
                delivery's where some were handed back unspent; 0: there was no claim.
        """
        failure = Failure.from_error(error)
        _log.error("turn.failed", code=failure.code)
        self._signals.result("gave_up")
        self._signals.gave_up(error.code)
        try:
            await self._publisher.failure(
                delivery.envelope, failure, attempt=max(delivery.attempt, claimed)
            )
        except (TransportUnavailableError, QueueFullError):
            # It may be published all the same.  The last attempt is spent, so that the next
            # delivery says this again and does not run the agent behind it.
            return Retry() if delivery.attempt == self._options.max_attempts else Release()
        return Bury(f"{failure.code}: {failure.message}", error.code)

    async def answer_exhausted(self, delivery: Delivery) -> None:
        """Tell the caller that handling broke on the last attempt; the message is buried next."""
        failure = Failure.from_error(InternalError())
        await self._publisher.failure(delivery.envelope, failure, attempt=delivery.attempt)

    async def _abandon(self, claim: Claim) -> None:
        try:
            await self._in_time(self._sessions.abandon_turn(claim))
        except (StoreUnavailableError, TimeoutError):
            # Costs the next claim the rest of this lease, nothing else.
            _log.warning("dependency.unavailable", dependency="session store")

    async def _in_time(self, call: Coroutine[Any, Any, T]) -> T:
        """Await one answer of the session store."""
        return await within(self._options.store_timeout, call)


def _seconds_until(moment: float) -> float:
    return max(0.0, moment - asyncio.get_running_loop().time())


def _outcome(claim: Claim, ended: Ended) -> Outcome:
    return Outcome(
        payload=ended.payload,
        status_code=ended.status_code,
        attempt=claim.attempt,
        fence=claim.fence,
        chunk_count=ended.chunk_count,
    )
