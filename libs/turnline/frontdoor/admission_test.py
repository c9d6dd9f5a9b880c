"""Admission: once per request id, and nothing left behind when refused."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from turnline.errors import (
    DrainingError,
    InvalidRequestError,
    NotFoundError,
    PayloadTooLargeError,
    QueueFullError,
    RequestIdReusedError,
    TransportUnavailableError,
    TurnlineError,
    UnknownAgentError,
)
from turnline.frontdoor import Admission, AdmissionOptions, Submission
from turnline.protocol import (
    Attachment,
    ChatReply,
    ChatRequest,
    DeliveryMode,
    Envelope,
    Failure,
    ReplyKey,
    SessionKey,
)
from turnline.store import Cancelled, New, PendingReply, StoredReply
from turnline.store.memory import (
    MemoryResponseOptions,
    MemoryResponseStore,
    MemorySessionOptions,
    MemorySessionStore,
)
from turnline.testing import FakeClock
from turnline.transport import Capabilities, Consumer, DeadLetters, QueueStats


class Queue:
    """A queue that keeps what is sent, unless told how to fail."""

    def __init__(self) -> None:
        self.sent: list[Envelope] = []
        self.fails: Callable[[], TurnlineError] | None = None
        self.answers = asyncio.Event()
        self.answers.set()

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    @property
    def dead_letters(self) -> DeadLetters:
        raise NotImplementedError

    async def send(self, envelope: Envelope) -> bool:
        await self.answers.wait()
        if self.fails is not None:
            raise self.fails()
        self.sent.append(envelope)
        return True

    def consumer(self) -> Consumer:
        raise NotImplementedError

    async def stats(self) -> QueueStats:
        raise NotImplementedError


@dataclass(slots=True, kw_only=True)
class Door:
    """Admission and what stands behind it."""

    admission: Admission
    queue: Queue
    replies: MemoryResponseStore
    sessions: MemorySessionStore
    clock: FakeClock
    accepting: bool = True


def make_door(
    *, knows_agent: Callable[[str], bool] | None = None, options: AdmissionOptions | None = None
) -> Door:
    clock = FakeClock()
    queue = Queue()
    replies = MemoryResponseStore(MemoryResponseOptions(), clock)
    sessions = MemorySessionStore(MemorySessionOptions(), clock)
    admission = Admission(
        queue=queue,
        replies=replies,
        sessions=sessions,
        clock=clock,
        accepting=lambda: door.accepting,
        knows_agent=knows_agent,
        options=options,
    )
    door = Door(admission=admission, queue=queue, replies=replies, sessions=sessions, clock=clock)
    return door


def submission(request_id: str = "r1", *, scope: str = "", prompt: str = "hi") -> Submission:
    return Submission(
        session_id="s1",
        request_id=request_id,
        request=ChatRequest(prompt=prompt, user_id="says"),
        delivery_mode=DeliveryMode.KEEP,
        budget=30.0,
        scope=scope,
    )


def stored(request_id: str = "r1") -> StoredReply:
    return StoredReply(
        request_id=request_id, session_id="s1", status_code=200, payload=ChatReply(result="x")
    )


async def test_a_turn_is_opened_then_sent_with_its_deadline() -> None:
    door = make_door()

    admitted = await door.admission.submit(submission())

    envelope = door.queue.sent[0]
    assert (admitted.request_id, admitted.known) == ("r1", False)
    assert envelope.deadline == door.clock.time() + 30.0
    assert isinstance(await door.replies.get(admitted.reply_key), PendingReply)


async def test_an_id_is_minted_where_none_is_given() -> None:
    door = make_door()

    first = await door.admission.submit(submission(""))
    second = await door.admission.submit(submission(""))

    assert first.request_id != second.request_id
    assert len(door.queue.sent) == 2


async def test_whoever_learned_a_minted_id_can_come_back_with_it() -> None:
    door = make_door()
    first = await door.admission.submit(submission(""))

    again = await door.admission.submit(submission(first.request_id))

    assert again.known


async def test_the_authenticated_user_replaces_what_the_caller_says() -> None:
    door = make_door()

    await door.admission.submit(submission(scope="alice"))
    await door.admission.submit(submission())

    assert [(e.scope, e.user_id) for e in door.queue.sent] == [("alice", "alice"), ("", "says")]


async def test_two_users_may_use_one_request_id() -> None:
    door = make_door()

    alice = await door.admission.submit(submission(scope="alice", prompt="a"))
    bob = await door.admission.submit(submission(scope="bob", prompt="b"))

    assert not alice.known
    assert not bob.known


async def test_the_same_id_and_body_attaches_and_is_sent_again_while_pending() -> None:
    door = make_door()
    await door.admission.submit(submission())

    again = await door.admission.submit(submission())

    assert again.known
    assert len({envelope.dedup_id for envelope in door.queue.sent}) == 1


async def test_an_ended_turn_is_not_sent_again() -> None:
    door = make_door()
    await door.admission.submit(submission())
    await door.replies.put(ReplyKey("", "r1"), stored())

    again = await door.admission.submit(submission())

    assert again.known
    assert len(door.queue.sent) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"prompt": "other"},
        {"agent": "other"},
        {"extra": {"a": 1}},
        {"files": (Attachment(data="eA=="),)},
        {"resume": {"run_id": "x"}},
    ],
)
async def test_the_same_id_with_another_body_is_refused(changed: dict[str, object]) -> None:
    door = make_door()
    await door.admission.submit(submission())
    other = replace(submission(), request=replace(submission().request, **changed))  # type: ignore[arg-type]  # fields are the test's

    with pytest.raises(RequestIdReusedError):
        await door.admission.submit(other)

    assert len(door.queue.sent) == 1


async def test_the_order_of_keys_makes_no_other_body() -> None:
    door = make_door()
    one = ChatRequest(prompt="x", extra={"a": 1, "b": {"c": 1, "d": 2}})
    two = ChatRequest(prompt="x", extra={"b": {"d": 2, "c": 1}, "a": 1})
    await door.admission.submit(replace(submission(), request=one))

    assert (await door.admission.submit(replace(submission(), request=two))).known


@pytest.mark.parametrize(
    "failure",
    [
        lambda: QueueFullError("full", scope="queue", retry_after=1.0),
        lambda: PayloadTooLargeError("large", limit_bytes=1),
        lambda: TransportUnavailableError("gone"),
    ],
)
async def test_a_turn_the_queue_refuses_leaves_nothing_behind(
    failure: Callable[[], TurnlineError],
) -> None:
    door = make_door()
    door.queue.fails = failure

    with pytest.raises(type(failure())):
        await door.admission.submit(submission())

    assert await door.replies.get(ReplyKey("", "r1")) is None


async def test_attaching_needs_no_room_in_the_queue() -> None:
    door = make_door()
    await door.admission.submit(submission())
    door.queue.fails = lambda: QueueFullError("full", scope="queue", retry_after=1.0)

    assert (await door.admission.submit(submission())).known


async def test_a_queue_that_does_not_confirm_is_unavailable_and_the_id_stays_usable() -> None:
    door = make_door(options=AdmissionOptions(send_timeout=0.01))
    door.queue.answers.clear()

    with pytest.raises(TransportUnavailableError) as refused:
        await door.admission.submit(submission())
    door.queue.answers.set()
    again = await door.admission.submit(submission())

    assert refused.value.retry_after == 1.0
    assert again.known
    assert len(door.queue.sent) == 1


async def test_nothing_is_admitted_while_draining() -> None:
    door = make_door()
    door.accepting = False

    with pytest.raises(DrainingError):
        await door.admission.submit(submission())

    assert door.queue.sent == []


async def test_an_unknown_agent_is_refused_where_agents_are_known() -> None:
    door = make_door(knows_agent=lambda name: name == "echo")

    with pytest.raises(UnknownAgentError):
        await door.admission.submit(submission())


async def test_schedules_are_refused_unless_configured() -> None:
    scheduled = replace(submission(), request=ChatRequest(prompt="x", schedule={"at": "t"}))

    with pytest.raises(InvalidRequestError):
        await make_door().admission.submit(scheduled)
    await make_door(options=AdmissionOptions(schedules=True)).admission.submit(scheduled)


async def test_cancelling_a_queued_turn_ends_it_for_its_caller() -> None:
    door = make_door()
    turn = await door.admission.submit(submission(scope="alice"))

    state = await door.admission.cancel(turn.reply_key)

    reply = await door.replies.get(turn.reply_key)
    assert state is Cancelled.QUEUED
    assert isinstance(reply, StoredReply)
    assert isinstance(reply.payload, Failure)
    assert reply.payload.code == "turn_cancelled"


async def test_cancelling_a_running_turn_leaves_its_end_to_the_runner() -> None:
    door = make_door()
    turn = await door.admission.submit(submission())
    begun = await door.sessions.begin_turn(SessionKey("", "s1"), "r1", lease=10)

    state = await door.admission.cancel(turn.reply_key)

    assert isinstance(begun, New)
    assert state is Cancelled.RUNNING
    assert isinstance(await door.replies.get(turn.reply_key), PendingReply)


async def test_an_ended_turn_cannot_be_cancelled() -> None:
    door = make_door()
    turn = await door.admission.submit(submission())
    await door.replies.put(turn.reply_key, stored())

    assert await door.admission.cancel(turn.reply_key) is Cancelled.DONE


async def test_another_users_turn_is_as_unknown_as_any() -> None:
    door = make_door()
    await door.admission.submit(submission(scope="alice"))

    with pytest.raises(NotFoundError):
        await door.admission.cancel(ReplyKey("bob", "r1"))
