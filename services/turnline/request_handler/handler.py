"""Chat over request and response: admit a turn, then wait for it, stream it, or come back for it.

Knows admission and the response store by their ports; knows no broker, web framework or
environment.  Takes values and returns values; what they look like in HTTP is `routes`' business.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from turnline.errors import (
    Code,
    DrainingError,
    NotFoundError,
    TurnDeadlineExceededError,
    TurnlineError,
)
from turnline.frontdoor import Admission, Admitted, Submission
from turnline.protocol import BEGINNING, DeliveryMode, Failure, Position, ReplyKey, TraceContext
from turnline.protocol.clock import Clock
from turnline.protocol.json_body import ChatBody
from turnline.request_handler.preferences import ReplyMode
from turnline.request_handler.waiting import WaitingRoom
from turnline.store import Cancelled, PendingReply, ResponseStore, StoredReply, StreamItem
from turnline.telemetry import get_logger

_log = get_logger("request_handler")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatOptions:
    """Budgets, in seconds.

    Attributes:
        reply_budget: how long a caller waits for its answer (`retry_count` x `delay` of the
            response store); also the longest wait of a poll.
        turn_timeout: how long a turn may take that nobody waits for in this way.
    """

    reply_budget: float
    turn_timeout: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatCall:
    """One checked request.

    Attributes:
        user: the authenticated user; empty where no AuthValidator is set.
        surface: where it came in, for the log.
    """

    body: ChatBody
    surface: str
    user: str = ""
    trace: TraceContext = TraceContext()


@dataclass(frozen=True, slots=True, kw_only=True)
class NoReply:
    """An admitted turn whose caller is sent away without an answer; it can come back for it."""

    request_id: str
    session_id: str
    error: TurnlineError


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStream:
    """The stream of one turn, for one reader standing at `after`.

    Attributes:
        known: the turn was admitted before.
    """

    request_id: str
    session_id: str
    after: Position
    items: AsyncIterator[StreamItem]
    known: bool


class ChatHandler:
    """Handles chat requests; one instance per process, many calls at once."""

    def __init__(
        self,
        *,
        admission: Admission,
        replies: ResponseStore,
        waiting: WaitingRoom,
        clock: Clock,
        options: ChatOptions,
    ) -> None:
        self._admission = admission
        self._replies = replies
        self._waiting = waiting
        self._clock = clock
        self._options = options

    async def chat(self, call: ChatCall) -> StoredReply | NoReply:
        """Admit a turn and wait for its end.

        The turn is cut off when its caller's budget is over.  Cancelling the call leaves the turn
        running; its answer can be read under its request id.

        Raises:
            TurnlineError: nothing was admitted; see `Admission.submit`.
        """
        budget = self._options.reply_budget
        give_up_at = self._clock.monotonic() + budget
        turn = await self._submit(call, ReplyMode.SYNC, budget)
        try:
            reply = await self._wait(turn.reply_key, give_up_at - self._clock.monotonic())
        except DrainingError as error:
            return _no_reply(turn, error)
        if reply is None:
            return _no_reply(turn, _out_of_time(turn.request_id))
        return _in_callers_words(reply)

    async def submit(self, call: ChatCall, *, wait: float = 0.0) -> StoredReply | Admitted:
        """Admit a turn; give its end if it comes within `wait` seconds.

        Raises:
            TurnlineError: nothing was admitted; see `Admission.submit`.
        """
        turn = await self._submit(call, ReplyMode.ASYNC, self._options.turn_timeout)
        if wait <= 0:
            return turn
        try:
            reply = await self._wait(turn.reply_key, min(wait, self._options.reply_budget))
        except DrainingError:
            return turn
        return reply or turn

    async def submit_stream(self, call: ChatCall, *, after: Position = BEGINNING) -> TurnStream:
        """Admit a turn and give its stream; a known turn is joined.

        Raises:
            TurnlineError: nothing was admitted; see `Admission.submit`.
        """
        turn = await self._submit(call, ReplyMode.STREAM, self._options.turn_timeout)
        return self._stream(turn.reply_key, turn.session_id, after, known=turn.known)

    async def join_stream(self, key: ReplyKey, *, after: Position = BEGINNING) -> TurnStream:
        """Give the stream of a turn admitted before, running or ended.

        Raises:
            NotFoundError: no such turn of this user.
        """
        found = await self._replies.get(key)
        if found is None:
            raise NotFoundError("No turn of this request_id", field="request_id")
        return self._stream(key, found.session_id, after, known=True)

    async def poll(self, key: ReplyKey, *, wait: float = 0.0) -> StoredReply | PendingReply | None:
        """Read the end of a turn, waiting up to `wait` seconds for it; reads destroy nothing.

        None: no such turn of this user.  PendingReply: it has not ended.
        """
        found = await self._replies.get(key)
        if wait <= 0 or not isinstance(found, PendingReply):
            return found
        try:
            reply = await self._wait(key, min(wait, self._options.reply_budget))
        except DrainingError:
            return found
        return reply or found

    async def cancel(self, key: ReplyKey) -> Cancelled:
        """Stop a turn, queued or running.

        Raises:
            NotFoundError: no such turn of this user.
        """
        return await self._admission.cancel(key)

    async def _submit(self, call: ChatCall, mode: ReplyMode, budget: float) -> Admitted:
        body = call.body
        streams = mode is ReplyMode.STREAM
        submission = Submission(
            session_id=body.session_id,
            request_id=body.request_id,
            request=body.request,
            delivery_mode=DeliveryMode.KEEP_STREAM if streams else DeliveryMode.KEEP,
            budget=budget,
            scope=call.user,
            trace=call.trace,
        )
        turn = await self._admission.submit(submission)
        if not turn.known:
            _log.info(
                "turn.admitted",
                request_id=turn.request_id,
                session_id=turn.session_id,
                surface=call.surface,
                mode=mode.value,
            )
        return turn

    async def _wait(self, key: ReplyKey, seconds: float) -> StoredReply | None:
        """Wait for the end; None if there is none by then.

        Raises:
            DrainingError: this process closes and the end is not here.
        """
        try:
            async with self._waiting.seat():
                return await self._replies.wait(key, max(0.0, seconds))
        except DrainingError:
            found = await self._replies.get(key)
            if isinstance(found, StoredReply):
                return found
            raise

    def _stream(
        self, key: ReplyKey, session_id: str, after: Position, *, known: bool
    ) -> TurnStream:
        return TurnStream(
            request_id=key.request_id,
            session_id=session_id,
            after=after,
            items=self._replies.stream(key, after),
            known=known,
        )


def _no_reply(turn: Admitted, error: TurnlineError) -> NoReply:
    return NoReply(request_id=turn.request_id, session_id=turn.session_id, error=error)


def _out_of_time(request_id: str) -> TurnDeadlineExceededError:
    return TurnDeadlineExceededError(f"No response received for request_id: {request_id}")


def _in_callers_words(reply: StoredReply) -> StoredReply:
    """Say the same of a turn that ran into its deadline, whoever noticed it first."""
    failure = reply.payload
    if isinstance(failure, Failure) and failure.code == Code.TURN_DEADLINE_EXCEEDED:
        message = _out_of_time(reply.request_id).message
        return replace(reply, payload=replace(failure, message=message))
    return reply
