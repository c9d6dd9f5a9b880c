"""Full queues, floods, jumping clocks and early ends: slower or refused, never lost or leaked."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from chaos.oracle import faults_of, runs_of
from chaos.rig import QUEUES, open_rig
from turnline.agent import RetryableAgentError, Turn
from turnline.errors import Code, QueueFullError
from turnline.protocol import ChatReply, Failure, SessionKey
from turnline.protocol.clock import SystemClock
from turnline.store import New

PATIENT_QUEUES = replace(QUEUES, ack_wait=300.0)


class WallClock(SystemClock):
    """A clock whose `time` an operator moves."""

    def __init__(self) -> None:
        self.offset = 0.0

    def time(self) -> float:
        return super().time() + self.offset


async def quick(turn: Turn) -> AsyncIterator[str]:
    yield turn.prompt


async def test_two_thousand_sessions_at_once_are_each_answered_once() -> None:
    async with open_rig(PATIENT_QUEUES) as rig:
        rig.speak = quick
        turns = [await rig.submit(f"s{number}", f"turn-{number}") for number in range(2_000)]
        rig.start_runner(concurrency=100)

        replies = [await rig.answer(turn) for turn in turns]

        assert all(isinstance(reply.payload, ChatReply) for reply in replies)
        assert faults_of(await rig.note_histories()) == []


async def test_an_output_queue_of_one_slows_streams_down_and_loses_nothing() -> None:
    async with open_rig(replace(PATIENT_QUEUES, max_messages=1)) as rig:
        rig.start_runner()
        turns = []
        for number in range(6):
            while True:
                try:
                    turns.append(await rig.submit(f"s{number % 3}", f"turn-{number}"))
                    break
                except QueueFullError:
                    await asyncio.sleep(0.005)

        replies = [await rig.answer(turn) for turn in turns]

        assert all(isinstance(reply.payload, ChatReply) for reply in replies)
        assert faults_of(await rig.note_histories()) == []


async def test_a_long_stream_nobody_reads_ends_and_stays_within_its_bounds() -> None:
    pieces = 20_000

    async def talkative(turn: Turn) -> AsyncIterator[str]:
        for number in range(pieces):
            yield "x"
            if not number % 200:
                await asyncio.sleep(0)

    async with open_rig(PATIENT_QUEUES) as rig:
        rig.speak = talkative
        rig.start_runner()
        turn = await rig.submit("s1", "talkative")
        async with asyncio.timeout(60):
            reply = await rig.replies.wait(turn.reply_key, 60)

        assert reply is not None and isinstance(reply.payload, ChatReply)
        assert len(reply.payload.result) == pieces
        assert rig.replies.usage.bytes < 32 * 1024 * 1024


async def test_a_clock_set_back_gives_no_turn_more_time_than_it_was_allowed() -> None:
    async def hung(turn: Turn) -> AsyncIterator[str]:
        await asyncio.Event().wait()
        yield ""

    clock = WallClock()
    async with open_rig(clock=clock) as rig:
        rig.speak = hung
        turn = await rig.submit("s1", "hung", budget=0.3)
        clock.offset = -3600.0
        rig.start_runner()

        async with asyncio.timeout(30):
            reply = await rig.answer(turn)

        assert isinstance(reply.payload, Failure)
        assert reply.payload.code == Code.TURN_DEADLINE_EXCEEDED


async def test_a_clock_set_forward_does_not_cut_off_a_running_turn() -> None:
    speaking = asyncio.Event()
    going = asyncio.Event()

    async def paused(turn: Turn) -> AsyncIterator[str]:
        speaking.set()
        await going.wait()
        yield "fine"

    clock = WallClock()
    async with open_rig(clock=clock) as rig:
        rig.speak = paused
        rig.start_runner()
        turn = await rig.submit("s1", "running")
        await speaking.wait()
        clock.offset = 3600.0
        await asyncio.sleep(0.3)
        going.set()

        assert isinstance((await rig.answer(turn)).payload, ChatReply)


async def test_a_flood_of_poison_holds_no_turn_up_and_is_bounded() -> None:
    async with open_rig(replace(PATIENT_QUEUES, max_dead_letters=10)) as rig:
        for number in range(3_000):
            await rig.transport.input.inject(b"\xff\xfe poison", f"group-{number}")
        rig.start_runner()

        reply = await rig.answer(await rig.submit("s1", "turn"))
        async with asyncio.timeout(30):
            while True:
                stats = await rig.transport.input.stats()
                if not stats.waiting:
                    break
                await asyncio.sleep(0.01)

        assert isinstance(reply.payload, ChatReply)
        assert stats.dead == 10


async def test_a_letter_redriven_while_its_session_is_busy_runs_after_what_runs() -> None:
    fail = True

    async def sometimes(turn: Turn) -> AsyncIterator[str]:
        if turn.prompt == "bad" and fail:
            raise RuntimeError
        await asyncio.sleep(0.02)
        yield turn.prompt

    async with open_rig() as rig:
        rig.speak = sometimes
        rig.start_runner()
        bad = await rig.submit("s1", "bad")
        await rig.answer(bad)
        fail = False
        letters = rig.transport.input.dead_letters
        (letter,) = await letters.list()
        others = [await rig.submit("s1", f"other-{number}") for number in range(3)]

        await letters.redrive(letter.id)
        assert await letters.purge() == 0
        for other in others:
            await rig.answer(other)
        await rig.answered_with(bad.reply_key, ChatReply)

        histories = (await rig.note_histories()).histories
        assert histories["s1"] == ["other-0", "other-1", "other-2", "bad"]


async def test_one_slot_and_a_session_claimed_elsewhere_hold_others_up_for_one_lease_at_most() -> (
    None
):
    async with open_rig(PATIENT_QUEUES) as rig:
        rig.speak = quick
        begun = await rig.sessions.begin_turn(SessionKey("", "s1"), "a dead runner's", lease=0.5)
        assert isinstance(begun, New)
        rig.start_runner(concurrency=1)
        turns = [await rig.submit("s1", "waits"), await rig.submit("s2", "other")]

        async with asyncio.timeout(30):
            replies = [await rig.answer(turn) for turn in turns]

        assert all(isinstance(reply.payload, ChatReply) for reply in replies)


@pytest.mark.parametrize("phase", ["busy", "throttled", "retry", "running", "publishing"])
async def test_a_runner_told_to_stop_in_any_phase_hands_its_turn_on_unspent(phase: str) -> None:
    reached = asyncio.Event()
    first = True

    async def speak(turn: Turn) -> AsyncIterator[str]:
        nonlocal first
        if not first:
            yield "fine"
            return
        first = False
        reached.set()
        if phase == "throttled":
            raise RetryableAgentError(retry_after=50.0, spends_attempt=False)
        if phase == "retry":
            raise RetryableAgentError(retry_after=0.1)
        if phase == "running":
            await asyncio.Event().wait()
        yield "fine"

    async with open_rig(PATIENT_QUEUES) as rig:
        rig.speak = speak
        if phase == "busy":
            await rig.sessions.begin_turn(SessionKey("", "s1"), "dead", lease=0.4)
            reached.set()
        stop, runner = rig.start_draining_runner()
        turn = await rig.submit("s1", "turn")
        await reached.wait()
        await asyncio.sleep(0.01)

        stop.set()
        async with asyncio.timeout(30):
            await runner
        rig.start_runner()
        reply = await rig.answer(turn)

        assert isinstance(reply.payload, ChatReply)
        assert runs_of(rig.history, "turn") <= 2
        assert faults_of(await rig.note_histories()) == []


async def test_nothing_is_left_when_turns_of_every_kind_are_over() -> None:
    async def mixed(turn: Turn) -> AsyncIterator[str]:
        if turn.prompt.startswith("bad"):
            raise RuntimeError
        if turn.prompt.startswith("hung"):
            await asyncio.Event().wait()
        yield turn.prompt

    async with open_rig() as rig:
        rig.speak = mixed
        rig.start_runner()
        await rig.answer(await rig.submit("s", "warm"))
        before = len(asyncio.all_tasks())
        turns = [
            await rig.submit(f"s{number}", f"{kind}-{number}", budget=0.5)
            for number in range(20)
            for kind in ("bad", "hung", "fine")
        ]
        for turn in turns[1::6]:
            await rig.admission.cancel(turn.reply_key)
        for turn in turns:
            await rig.answer(turn)
        async with asyncio.timeout(30):
            while True:
                await asyncio.sleep(0.01)
                if len(asyncio.all_tasks()) <= before:
                    break
        stats = await rig.transport.input.stats()

        assert (stats.waiting, stats.in_flight, rig.replies.usage.watched) == (0, 0, 0)
