"""Callers who leave, repeat, cancel and come late lose no turn and suppress nobody's."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from chaos.oracle import faults_of, runs_of
from chaos.rig import MAX_ATTEMPTS, QUEUES, Rig, open_rig
from turnline.agent import RetryableAgentError, Turn
from turnline.errors import Code, QueueFullError
from turnline.protocol import ChatReply, Failure, ReplyKey, SessionKey
from turnline.store import Busy, Cancelled, New, PendingReply, StoredReply


async def quick(turn: Turn) -> AsyncIterator[str]:
    yield turn.prompt


def code_of(reply: StoredReply) -> str:
    assert isinstance(reply.payload, Failure), reply
    return reply.payload.code


async def handed_back(rig: Rig, session_id: str) -> None:
    """Wait until nobody has a claim on a session."""
    key = SessionKey("", session_id)
    async with asyncio.timeout(30):
        begun = await rig.sessions.begin_turn(key, "look", lease=30.0)
        while isinstance(begun, Busy):
            await asyncio.sleep(0.001)
            begun = await rig.sessions.begin_turn(key, "look", lease=30.0)
    assert isinstance(begun, New)
    await rig.sessions.abandon_turn(begun.claim)


async def test_a_repeated_request_whose_reply_was_evicted_is_answered_again_and_not_run() -> None:
    async with open_rig(replies_kept=1) as rig:
        rig.start_runner()
        first = await rig.answer(await rig.submit("s1", "old"))
        await rig.answer(await rig.submit("s2", "new"))
        assert await rig.replies.get(ReplyKey("", "old")) is None

        again = await rig.submit("s1", "old")
        async with asyncio.timeout(30):
            second = await rig.answer(again)

        assert second.payload == first.payload
        assert runs_of(rig.history, "old") == 1


async def test_a_repeated_request_whose_failure_was_evicted_is_tried_again() -> None:
    async def failing(turn: Turn) -> AsyncIterator[str]:
        if turn.prompt == "bad":
            raise RuntimeError
        yield turn.prompt

    async with open_rig(replies_kept=1) as rig:
        rig.speak = failing
        rig.start_runner()
        await rig.answer(await rig.submit("s1", "bad"))
        await rig.answer(await rig.submit("s2", "new"))

        again = await rig.submit("s1", "bad")
        async with asyncio.timeout(30):
            reply = await rig.answer(again)

        assert code_of(reply) == Code.AGENT_FAILED
        assert runs_of(rig.history, "bad") == 2 * MAX_ATTEMPTS


async def test_a_refused_submission_does_not_make_the_accepted_one_beside_it_unknown() -> None:
    async with open_rig(replace(QUEUES, max_messages=1)) as rig:
        await rig.submit("s0", "in the way")
        consumer = rig.transport.input.consumer()
        async with consumer:
            delivery = await consumer.receive()

            async def make_room() -> None:
                await asyncio.sleep(0)
                await delivery.ack()

            async with asyncio.TaskGroup() as tasks:
                refused = tasks.create_task(_refusal(rig))
                tasks.create_task(make_room())
                accepted = tasks.create_task(rig.submit("s1", "twice"))

        assert refused.result()
        assert isinstance(await rig.replies.get(accepted.result().reply_key), PendingReply)


async def _refusal(rig: Rig) -> bool:
    with pytest.raises(QueueFullError):
        await rig.submit("s1", "twice")
    rig.history.accepted.clear()
    return True


@pytest.mark.parametrize("steps", range(6))
async def test_a_caller_cancelled_at_any_step_of_admission_can_submit_again(steps: int) -> None:
    async with open_rig() as rig:
        rig.speak = quick
        leaving = asyncio.create_task(rig.submit("s1", "left"))
        for _ in range(steps):
            await asyncio.sleep(0)
        leaving.cancel()
        await asyncio.wait([leaving])
        rig.start_runner()

        reply = await rig.answer(await rig.submit("s1", "left"))

        assert isinstance(reply.payload, ChatReply)
        assert runs_of(rig.history, "left") == 1
        assert faults_of(await rig.note_histories()) == []


async def test_a_session_of_queued_turns_cancelled_one_by_one_runs_what_is_left_in_order() -> None:
    async with open_rig() as rig:
        rig.speak = quick
        turns = [await rig.submit("s1", f"turn-{number:02}") for number in range(100)]
        rig.start_runner()

        states = [await rig.admission.cancel(turn.reply_key) for turn in turns[::2]]
        replies = [await rig.answer(turn) for turn in turns]

        assert set(states) <= {Cancelled.QUEUED, Cancelled.RUNNING, Cancelled.DONE}
        assert all(isinstance(reply.payload, ChatReply) for reply in replies[1::2])
        assert faults_of(await rig.note_histories()) == []


@pytest.mark.parametrize("steps", range(0, 40, 3))
async def test_a_cancel_at_any_moment_leaves_answer_and_history_agreed(steps: int) -> None:
    async with open_rig() as rig:
        rig.start_runner()
        turn = await rig.submit("s1", "turn")
        for _ in range(steps):
            await asyncio.sleep(0)

        await rig.admission.cancel(turn.reply_key)
        await rig.answer(turn)
        await rig.answer(await rig.submit("s1", "next"))

        assert faults_of(await rig.note_histories()) == []


async def test_a_turn_cancelled_while_it_waits_for_its_retry_is_answered_at_once() -> None:
    waiting = asyncio.Event()

    async def later(turn: Turn) -> AsyncIterator[str]:
        if turn.prompt == "later":
            waiting.set()
            raise RetryableAgentError(retry_after=1.0)
        yield "fine"

    async with open_rig() as rig:
        rig.speak = later
        rig.start_runner()
        turn = await rig.submit("s1", "later")
        await waiting.wait()
        await handed_back(rig, "s1")

        state = await rig.admission.cancel(turn.reply_key)
        reply = await rig.replies.get(turn.reply_key)
        following = await rig.answer(await rig.submit("s1", "following"))

        assert state is Cancelled.QUEUED
        assert isinstance(reply, StoredReply)
        assert code_of(reply) == Code.TURN_CANCELLED
        assert isinstance(following.payload, ChatReply)
        assert runs_of(rig.history, "later") == 1


async def test_a_turn_cancelled_in_a_providers_rate_limit_lets_its_session_go_on() -> None:
    waiting = asyncio.Event()

    async def throttled(turn: Turn) -> AsyncIterator[str]:
        if turn.prompt == "throttled":
            waiting.set()
            raise RetryableAgentError(retry_after=60.0, spends_attempt=False)
        yield "fine"

    async with open_rig() as rig:
        rig.speak = throttled
        rig.start_runner()
        turn = await rig.submit("s1", "throttled")
        await waiting.wait()
        await asyncio.sleep(0.02)

        await rig.admission.cancel(turn.reply_key)
        async with asyncio.timeout(30):
            reply = await rig.answer(turn)
            following = await rig.answer(await rig.submit("s1", "following"))

        assert code_of(reply) == Code.TURN_CANCELLED
        assert isinstance(following.payload, ChatReply)
