"""Admission: what REST, WebSocket and Lambda handlers share between a parsed request and a queue.

Knows the input queue and the stores by their ports; knows no web framework.  Idempotency by
request id follows the IETF Idempotency-Key draft: same id and body attaches or replays, same id
and other body is refused.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import orjson

from turnline.errors import (
    DrainingError,
    InvalidRequestError,
    NotFoundError,
    QueueFullError,
    RequestIdReusedError,
    TransportUnavailableError,
    TurnCancelledError,
    TurnlineError,
    UnknownAgentError,
)
from turnline.protocol import (
    ChatRequest,
    DeliveryMode,
    Envelope,
    Failure,
    ReplyKey,
    SessionKey,
    TraceContext,
    check_id,
    digest,
    new_request_id,
)
from turnline.protocol.clock import Clock
from turnline.protocol.deadline import within
from turnline.store import (
    Cancelled,
    Opened,
    ResponseStore,
    SessionStore,
    StoredReply,
)
from turnline.transport import Queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A checked request on its way in.

    Attributes:
        request_id: the caller's own id; empty to have one minted.
        scope: the authenticated user; empty where no AuthValidator is set.
        budget: seconds the turn may take from now; the turn is cut off then.
        attributes: metadata passed through to the answer.
    """

    session_id: str
    request: ChatRequest
    delivery_mode: DeliveryMode
    budget: float
    request_id: str = ""
    scope: str = ""
    trace: TraceContext = TraceContext()
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A turn that is on its way, or was already.

    Attributes:
        known: the id was used before with the same body: attach to it.
    """

    request_id: str
    session_id: str
    reply_key: ReplyKey
    known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionOptions:
    """Bounds of admission.

    Attributes:
        send_timeout: seconds for the broker to confirm.
        schedules: whether requests with a `schedule` block are taken.
    """

    send_timeout: float = 10.0
    schedules: bool = False


class Admission:
    """Admits turns onto the input queue, once per request id, and cancels them."""

    def __init__(
        self,
        *,
        queue: Queue,
        replies: ResponseStore,
        sessions: SessionStore,
        clock: Clock,
        accepting: Callable[[], bool],
        knows_agent: Callable[[str], bool] | None = None,
        options: AdmissionOptions | None = None,
    ) -> None:
        """Wire it.

        Args:
            accepting: False while the process drains.
            knows_agent: whether an agent of that name (empty: any) exists; None where the runner
                is elsewhere and only it can tell.
        """
        self._queue = queue
        self._replies = replies
        self._sessions = sessions
        self._clock = clock
        self._accepting = accepting
        self._knows_agent = knows_agent
        self._options = options or AdmissionOptions()

    async def submit(self, submission: Submission) -> Admitted:
        """Admit a turn.

        When this returns the broker has the turn (or had it before).  If the caller is cancelled
        meanwhile the turn may be on its way or not; submitting the same id again settles it.

        Raises:
            DrainingError, UnknownAgentError, InvalidRequestError, RequestIdReusedError,
            QueueFullError, PayloadTooLargeError, TransportUnavailableError,
            StoreUnavailableError: nothing was admitted.
        """
        self._check(submission)
        chosen = submission.request_id
        request_id = check_id(chosen, field="request_id") if chosen else new_request_id()
        key = ReplyKey(submission.scope, request_id)
        # Of a minted id too: its caller learns it and may come back with it.
        fingerprint = _fingerprint(submission)
        opened = await self._open(key, submission, fingerprint)
        known = opened is Opened.KNOWN
        if not known:
            await self._send_new(self._envelope(submission, request_id), key)
        elif not isinstance(await self._replies.get(key), StoredReply):
            await self._send_known(self._envelope(submission, request_id), key)
            # The first sender may have been refused meanwhile and have forgotten the turn.
            await self._open(key, submission, fingerprint)
        return Admitted(
            request_id=request_id,
            session_id=submission.session_id,
            reply_key=key,
            known=known,
        )

    async def cancel(self, key: ReplyKey) -> Cancelled:
        """Stop a turn, queued or running.

        Raises:
            NotFoundError: no such turn in this scope.
        """
        found = await self._replies.get(key)
        if found is None:
            raise NotFoundError("No turn of this request_id", field="request_id")
        if isinstance(found, StoredReply):
            return Cancelled.DONE
        session = SessionKey(key.scope, found.session_id)
        state = await self._sessions.cancel_turn(session, key.request_id)
        if state is Cancelled.QUEUED:
            # Its caller need not wait until the queue has got to it.
            await self._replies.put(key, _cancelled_reply(key, found.session_id))
        return state

    def _check(self, submission: Submission) -> None:
        if not self._accepting():
            raise DrainingError
        if submission.request.schedule is not None and not self._options.schedules:
            raise InvalidRequestError(
                "Scheduling is not configured. Add a 'schedule' block to config.yaml",
                field="schedule",
            )
        if self._knows_agent is not None and not self._knows_agent(submission.request.agent):
            raise UnknownAgentError

    def _envelope(self, submission: Submission, request_id: str) -> Envelope:
        now = self._clock.time()
        request = submission.request
        if submission.scope:
            request = replace(request, user_id=submission.scope)
        return Envelope(
            request_id=request_id,
            session_id=submission.session_id,
            scope=submission.scope,
            user_id=request.user_id,
            delivery_mode=submission.delivery_mode,
            payload=request,
            deadline=now + submission.budget,
            enqueued_at=now,
            trace=submission.trace,
            attributes=submission.attributes,
        )

    async def _open(self, key: ReplyKey, submission: Submission, fingerprint: str) -> Opened:
        opened = await self._replies.open(
            key, session_id=submission.session_id, fingerprint=fingerprint
        )
        if opened is Opened.DIFFERENT:
            raise RequestIdReusedError(key.request_id)
        return opened

    async def _send_new(self, envelope: Envelope, key: ReplyKey) -> None:
        try:
            if not await self._send(envelope):
                # The queue had it lately, but its answer is not kept any more: have the ledger
                # replay it, or the turn tried again if it had been given up.
                await self._send(envelope.again(self._clock.time()))
        except _UnconfirmedError:
            raise  # the queue may have it: keep what was opened
        except TurnlineError:
            await self._replies.discard(key)
            raise

    async def _send_known(self, envelope: Envelope, key: ReplyKey) -> None:
        # Its first sender may have died between opening and sending.  If it did not, the dedup
        # window or the ledger makes the second one harmless.
        try:
            await self._send(envelope)
        except QueueFullError:
            if await self._replies.get(key) is None:
                raise  # its first sender was refused too

    async def _send(self, envelope: Envelope) -> bool:
        try:
            return await within(self._options.send_timeout, self._queue.send(envelope))
        except TimeoutError as error:
            raise _UnconfirmedError(
                "The queue did not confirm the request in time; try again with the same request_id",
                retry_after=1.0,
            ) from error


class _UnconfirmedError(TransportUnavailableError):
    """Whether the queue has the request is not known."""


def _fingerprint(submission: Submission) -> str:
    body = orjson.dumps(submission.request, option=orjson.OPT_SORT_KEYS)
    return digest(submission.session_id, body.decode())


def _cancelled_reply(key: ReplyKey, session_id: str) -> StoredReply:
    failure = Failure.from_error(TurnCancelledError())
    return StoredReply(
        request_id=key.request_id,
        session_id=session_id,
        status_code=failure.status_code,
        payload=failure,
    )
