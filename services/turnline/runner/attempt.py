"""One attempt at a turn: run the agent within deadline and cancel, and say how that ended.

Pure of queue and ledger: it neither commits nor publishes the end, it only streams chunks while the
agent speaks.  `handler.py` decides what becomes of the result.
"""

import asyncio
from copy import deepcopy
from dataclasses import dataclass, replace

from turnline.agent import (
    Agent,
    AgentRegistry,
    FatalAgentError,
    Reply,
    RetryableAgentError,
    Turn,
)
from turnline.errors import (
    AgentFailedError,
    Code,
    InvalidRequestError,
    PayloadTooLargeError,
    TurnCancelledError,
    TurnDeadlineExceededError,
    TurnlineError,
    UnknownAgentError,
)
from turnline.hosting import Interruptible, alongside
from turnline.protocol import ChatReply, ChatRequest, Envelope, Failure, JsonObject, TurnRecord
from turnline.protocol.clock import Clock
from turnline.protocol.json_body import check_request
from turnline.protocol.json_value import check_json_object
from turnline.runner.agent_run import AgentRun, running
from turnline.runner.publish import ChunkPublisher, Publisher
from turnline.runner.signals import RunnerSignals
from turnline.store import Claim, New, Session, SessionStore
from turnline.telemetry import get_logger

_log = get_logger("runner")

# A cancel asked for meanwhile is found when the watch starts; a turn that is over by then never
# needed one.
_WATCH_AFTER_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The turn has an end worth committing.

    Attributes:
        record: what history gains; None adds nothing (failed and cancelled turns).
        state: the session's state from now on.
    """

    payload: ChatReply | Failure
    status_code: int
    chunk_count: int
    record: TurnRecord | None
    state: JsonObject

    def refused(self, failure: Failure, *, state: JsonObject) -> "Ended":
        """Make the failed end of a turn whose own end could not be kept or sent."""
        return replace(
            self, payload=failure, status_code=failure.status_code, record=None, state=state
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TryAgain:
    """The attempt failed and another one may help.

    Attributes:
        after: seconds to wait; None means the configured back-off.
        spends_attempt: False for a provider's rate limit.
    """

    after: float | None
    spends_attempt: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GaveUp:
    """The deadline came: answer with `error` and keep the message as a dead letter."""

    error: TurnlineError


Result = Ended | TryAgain | GaveUp


def broken_contract(error: Exception) -> FatalAgentError:
    """Say to the caller that the agent's answer cannot be used; the details go to the log."""
    _log.error("agent.failed", exc_info=error)
    return FatalAgentError("The agent gave an answer that cannot be used")


def refusal(error: FatalAgentError) -> Failure:
    """Make the failure of an answer that the agent refused, or that cannot be used."""
    return Failure(
        code=Code.AGENT_FAILED.value, message=error.message, status_code=error.status_code
    )


class Attempt:
    """One claim of one turn; call `run` once."""

    def __init__(
        self,
        *,
        envelope: Envelope,
        request: ChatRequest,
        begun: New,
        agents: AgentRegistry,
        sessions: SessionStore,
        publisher: Publisher,
        clock: Clock,
        signals: RunnerSignals,
    ) -> None:
        self._signals = signals
        self._envelope = envelope
        self._request = request
        self._claim: Claim = begun.claim
        self._session: Session = begun.session
        self._agents = agents
        self._sessions = sessions
        self._clock = clock
        self._chunks: ChunkPublisher = publisher.chunks(envelope, begun.claim)

    async def run(self, seconds: float) -> Result:
        """Run the agent for at most `seconds`.

        Raises:
            FencedError: a newer claim exists.
            TurnlineError: the output queue took no chunks for too long.
        """
        try:
            check_request(self._request)
            agent = self._agents.get(self._request.agent)
        except (InvalidRequestError, UnknownAgentError) as error:
            return self._without_reply(Failure.from_error(error))
        turn = self._turn()
        _log.debug("turn.started", agent=agent.name, fence=self._claim.fence)
        try:
            with self._signals.agent(self._envelope, agent.name):
                run = await self._drive(agent, turn, seconds)
        except TimeoutError:
            return GaveUp(error=TurnDeadlineExceededError())
        except (AgentFailedError, PayloadTooLargeError, TurnCancelledError) as error:
            return self._without_reply(Failure.from_error(error))
        if run.error is not None:
            return self._after_error(agent, run.error)
        if run.reply is None:
            return self._after_error(agent, FatalAgentError("The agent gave no answer"))
        try:
            check_json_object(run.reply.extra, field="extra")
        except InvalidRequestError as error:
            return self._after_error(agent, broken_contract(error))
        return self._with_reply(agent, turn, run.reply)

    async def _drive(self, agent: Agent, turn: Turn, seconds: float) -> AgentRun:
        stop = Interruptible()
        async with (
            asyncio.timeout(seconds),
            stop,
            alongside(lambda: self._watch_cancel(stop), after=_WATCH_AFTER_SECONDS),
            running(agent, turn, wants_events=self._envelope.delivery_mode.streams) as run,
        ):
            async for batch in run.batches():
                await self._chunks.send(batch)
        return run

    async def _watch_cancel(self, stop: Interruptible) -> None:
        await self._sessions.wait_cancelled(self._claim)
        stop.interrupt(TurnCancelledError())

    def _turn(self) -> Turn:
        request, envelope = self._request, self._envelope
        return Turn(
            request_id=envelope.request_id,
            session_id=envelope.session_id,
            prompt=request.prompt,
            history=self._session.history,
            # Deep: a failed turn keeps the state it was given, whatever its agent did to its own.
            state=deepcopy(dict(self._session.state)),
            files=request.files,
            images=request.images,
            user_id=envelope.user_id,
            group_id=request.group_id,
            thread_name=request.thread_name,
            attempt=self._claim.attempt,
            deadline=envelope.deadline,
            resume=request.resume,
            requests=request.requests,
            scheduled_task_id=request.scheduled_task_id,
            scheduled_time=request.scheduled_time,
            extra=request.extra,
        )

    def _with_reply(self, agent: Agent, turn: Turn, reply: Reply) -> Ended:
        record = TurnRecord(
            request_id=turn.request_id,
            prompt=turn.prompt,
            reply=reply.text,
            agent=agent.name,
            at=self._clock.time(),
            items=tuple(reply.items),
        )
        return Ended(
            payload=ChatReply(result=reply.text, extra=reply.extra),
            status_code=reply.status_code,
            chunk_count=self._chunks.count,
            record=record,
            state=turn.state,
        )

    def _without_reply(self, failure: Failure) -> Ended:
        return Ended(
            payload=failure,
            status_code=failure.status_code,
            chunk_count=self._chunks.count,
            record=None,
            state=self._session.state,
        )

    def _after_error(self, agent: Agent, error: Exception) -> Result:
        match error:
            case FatalAgentError():
                _log.warning(
                    "agent.refused",
                    agent=agent.name,
                    status_code=error.status_code,
                    exc_info=error,
                )
                return self._without_reply(refusal(error))
            case RetryableAgentError():
                _log.warning("agent.retryable", agent=agent.name, exc_info=error)
                return TryAgain(after=error.retry_after, spends_attempt=error.spends_attempt)
            case _:
                _log.error("agent.failed", agent=agent.name, exc_info=error)
                return TryAgain(after=None, spends_attempt=True)
