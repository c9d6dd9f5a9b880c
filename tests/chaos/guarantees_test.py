"""What one fault at a step does not show: ceilings, deadlines, cancels, redrives."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable

import pytest

from chaos.faults import Fault, Kind, Step
from chaos.oracle import faults_of, runs_of
from chaos.rig import LEASE_SECONDS, MAX_ATTEMPTS, Rig, open_rig
from turnline.agent import FatalAgentError, Reply, RetryableAgentError, Turn
from turnline.errors import Code, NotFoundError
from turnline.protocol import ChatReply, Chunk, Failure, ReplyKey
from turnline.store import Cancelled, StoredReply


async def _failing(turn: Turn) -> AsyncIterator[str]:
    yield "some text "
    raise RuntimeError("internal detail at db.internal")


def _code(reply: StoredReply) -> str:
    assert isinstance(reply.payload, Failure), reply
    return reply.payload.code


async def _dead(rig: Rig) -> list[str]:
    letters = await rig.transport.input.dead_letters.list()
    return [letter.envelope.request_id for letter in letters if letter.envelope]


async def test_a_turn_that_always_fails_is_answered_and_kept_as_a_dead_letter() -> None:
    async with open_rig() as rig:
        rig.speak = _failing
        rig.start_runner()

        reply = await rig.answer(await rig.submit("s1", "bad"))

        assert (reply.status_code, _code(reply)) == (500, Code.AGENT_FAILED)
        assert "internal" not in repr(reply)
        assert runs_of(rig.history, "bad") == MAX_ATTEMPTS
        assert await _dead(rig) == ["bad"]
        assert faults_of(await rig.note_histories()) == []


async def test_the_session_goes_on_after_a_turn_was_given_up() -> None:
    async def sometimes(turn: Turn) -> AsyncIterator[str]:
        if turn.prompt == "bad":
            raise RuntimeError
        yield turn.prompt

    async with open_rig() as rig:
        rig.speak = sometimes
        rig.start_runner()
        turns = [await rig.submit("s1", name) for name in ("bad", "good")]

        answers = [await rig.answer(turn) for turn in turns]

        assert _code(answers[0]) == Code.AGENT_FAILED
        assert isinstance(answers[1].payload, ChatReply)
        assert (await rig.note_histories()).histories["s1"] == ["good"]


async def test_a_later_turn_does_not_overtake_one_that_waits_for_its_retry() -> None:
    tries = 0

    async def second_time_lucky(turn: Turn) -> AsyncIterator[str]:
        nonlocal tries
        if turn.prompt == "first":
            tries += 1
            if tries < MAX_ATTEMPTS:
                raise RetryableAgentError(retry_after=0.1)
        yield turn.prompt

    async with open_rig() as rig:
        rig.speak = second_time_lucky
        rig.start_runner()
        turns = [await rig.submit("s1", name) for name in ("first", "second", "third")]

        for turn in turns:
            await rig.answer(turn)

        assert faults_of(await rig.note_histories()) == []
        assert rig.history.histories["s1"] == ["first", "second", "third"]


async def test_a_turn_whose_runner_dies_on_every_attempt_is_answered() -> None:
    async with open_rig() as rig:
        turn = await rig.submit("s1", "killer")
        for _ in range(MAX_ATTEMPTS):
            world = rig.start_runner(Fault(Step.COMMIT, Kind.DIES_BEFORE))
            await world.died.wait()
        rig.start_runner()

        reply = await rig.answer(turn)

        assert _code(reply) == Code.AGENT_FAILED
        assert runs_of(rig.history, "killer") == MAX_ATTEMPTS
        assert await _dead(rig) == ["killer"]


async def test_a_turn_longer_than_every_lease_runs_once() -> None:
    async def slow(turn: Turn) -> AsyncIterator[str]:
        await asyncio.sleep(LEASE_SECONDS * 3.5)
        yield "at last"

    async with open_rig() as rig:
        rig.speak = slow
        rig.start_runner()

        reply = await rig.answer(await rig.submit("s1", "long"))

        assert isinstance(reply.payload, ChatReply)
        assert runs_of(rig.history, "long") == 1


async def test_a_hung_agent_is_cut_off_at_the_deadline() -> None:
    async def hung(turn: Turn) -> AsyncIterator[str]:
        yield "thinking "
        await asyncio.Event().wait()

    async with open_rig() as rig:
        rig.speak = hung
        rig.start_runner()
        loop = asyncio.get_running_loop()
        started = loop.time()

        reply = await rig.answer(await rig.submit("s1", "hung", budget=0.5))

        assert _code(reply) == Code.TURN_DEADLINE_EXCEEDED
        assert loop.time() - started >= 0.5
        assert runs_of(rig.history, "hung") == 1
        assert await _dead(rig) == ["hung"]


async def test_a_turn_whose_deadline_passed_in_the_queue_never_starts() -> None:
    async with open_rig() as rig:
        turn = await rig.submit("s1", "late", budget=0.05)
        await asyncio.sleep(0.06)
        rig.start_runner()

        reply = await rig.answer(turn)

        assert _code(reply) == Code.TURN_DEADLINE_EXCEEDED
        assert runs_of(rig.history, "late") == 0


async def test_a_providers_rate_limit_spends_no_attempt() -> None:
    throttles = 5

    async def throttled(turn: Turn) -> AsyncIterator[str]:
        nonlocal throttles
        if throttles:
            throttles -= 1
            raise RetryableAgentError(retry_after=0.01, spends_attempt=False)
        yield "through"

    async with open_rig() as rig:
        rig.speak = throttled
        rig.start_runner()

        reply = await rig.answer(await rig.submit("s1", "throttled"))

        assert isinstance(reply.payload, ChatReply)
        assert await _dead(rig) == []


async def test_an_agents_refusal_is_an_answer_and_is_not_retried() -> None:
    async with open_rig() as rig:
        rig.start_runner()

        reply = await rig.answer(await rig.submit("s1", "r", prompt="refuse"))

        assert (reply.status_code, _code(reply)) == (402, Code.AGENT_FAILED)
        assert runs_of(rig.history, "r") == 1
        assert await _dead(rig) == []


async def test_a_cancelled_queued_turn_never_starts_and_its_caller_knows_at_once() -> None:
    async with open_rig() as rig:
        turn = await rig.submit("s1", "queued")

        state = await rig.admission.cancel(turn.reply_key)
        reply = await rig.answer(turn)
        rig.start_runner()
        await rig.answer(await rig.submit("s1", "next"))

        assert state is Cancelled.QUEUED
        assert _code(reply) == Code.TURN_CANCELLED
        assert runs_of(rig.history, "queued") == 0
        assert (await rig.note_histories()).histories["s1"] == ["next"]


async def test_a_cancelled_running_turn_stops_and_leaves_history_valid() -> None:
    speaking = asyncio.Event()
    stopped = asyncio.Event()

    async def endless(turn: Turn) -> AsyncIterator[str]:
        try:
            while turn.prompt == "running":
                yield "word "
                speaking.set()
                await asyncio.sleep(0.001)
            yield "done"
        finally:
            stopped.set()

    async with open_rig() as rig:
        rig.speak = endless
        rig.start_runner()
        turn = await rig.submit("s1", "running")
        await speaking.wait()

        state = await rig.admission.cancel(turn.reply_key)
        async with asyncio.timeout(30):
            await stopped.wait()
            reply = await rig.answer(turn)
        await rig.answer(await rig.submit("s1", "next"))

        assert state is Cancelled.RUNNING
        assert _code(reply) == Code.TURN_CANCELLED
        assert (await rig.note_histories()).histories["s1"] == ["next"]
        assert await rig.admission.cancel(turn.reply_key) is Cancelled.DONE


async def test_nobody_can_cancel_a_turn_of_another_scope() -> None:
    async with open_rig() as rig:
        await rig.submit("s1", "mine")

        with pytest.raises(NotFoundError):
            await rig.admission.cancel(ReplyKey("somebody", "mine"))


async def test_a_new_attempt_voids_what_the_one_before_streamed() -> None:
    attempts = 0

    async def longer_each_time(turn: Turn) -> AsyncIterator[str]:
        nonlocal attempts
        attempts += 1
        for index in range(2 + attempts):
            yield f"{attempts}.{index} "
        if attempts == 1:
            raise RuntimeError

    async with open_rig() as rig:
        rig.speak = longer_each_time
        rig.start_runner()

        reply = await rig.answer(await rig.submit("s1", "twice"))
        chunks = [item for item in rig.history.streams["twice"] if isinstance(item, Chunk)]

        assert isinstance(reply.payload, ChatReply)
        shown = "".join(chunk.delta for chunk in chunks if chunk.attempt == reply.attempt)
        assert shown == reply.payload.result == "2.0 2.1 2.2 2.3 "
        assert faults_of(await rig.note_histories()) == []


async def test_a_redriven_turn_runs_and_its_reply_replaces_the_failure() -> None:
    async with open_rig() as rig:
        rig.speak = _failing
        rig.start_runner()
        turn = await rig.submit("s1", "later")
        await rig.answer(turn)
        letters = rig.transport.input.dead_letters
        (letter,) = await letters.list()

        rig.speak = _one_word
        await letters.redrive(letter.id)
        await rig.answered_with(turn.reply_key, ChatReply)

        assert not await letters.list()
        assert (await rig.note_histories()).histories["s1"] == ["later"]


async def test_an_agent_that_blocks_a_thread_for_ever_costs_one_thread_and_its_turn() -> None:
    release = threading.Event()

    async def blocked(turn: Turn) -> AsyncIterator[str]:
        await asyncio.to_thread(release.wait)
        yield "never"

    async with open_rig() as rig:
        rig.speak = blocked
        rig.start_runner()

        try:
            reply = await rig.answer(await rig.submit("s1", "stuck", budget=0.3))
        finally:
            release.set()

        assert _code(reply) == Code.TURN_DEADLINE_EXCEEDED
        assert runs_of(rig.history, "stuck") == 1


async def _one_word(turn: Turn) -> AsyncIterator[str]:
    yield "word"


@pytest.mark.parametrize("broken", ["state", "extra"])
async def test_an_answer_that_is_no_json_fails_its_turn_and_is_not_retried(broken: str) -> None:
    async with open_rig() as rig:
        rig.conclude = _broken_answer(broken)
        rig.start_runner()

        reply = await rig.answer(await rig.submit("s1", "broken"))

        assert (reply.status_code, _code(reply)) == (500, Code.AGENT_FAILED)
        assert runs_of(rig.history, "broken") == 1
        assert (await rig.note_histories()).histories["s1"] == []


def _broken_answer(broken: str) -> Callable[[Turn], Reply]:
    def answer(turn: Turn) -> Reply:
        if broken == "state":
            turn.state["broken"] = object()
        return Reply(text="fine", extra={"broken": object()} if broken == "extra" else {})

    return answer


async def test_a_failed_turn_leaves_the_sessions_state_as_it_was() -> None:
    def count(turn: Turn) -> Reply:
        turn.state.setdefault("nested", {"turns": []})["turns"].append(turn.prompt)
        if turn.prompt == "fails":
            raise FatalAgentError("no")
        return Reply(text=",".join(turn.state["nested"]["turns"]))

    async with open_rig() as rig:
        rig.conclude, rig.speak = count, _silent
        rig.start_runner()

        replies = [
            await rig.answer(await rig.submit("s1", name)) for name in ("first", "fails", "last")
        ]

        assert isinstance(replies[2].payload, ChatReply)
        assert replies[2].payload.result == "first,last"


async def _silent(turn: Turn) -> AsyncIterator[str]:
    nothing: tuple[str, ...] = ()
    for text in nothing:
        yield text
