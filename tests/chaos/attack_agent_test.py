"""Agents that misbehave in every way Python allows cost their own turn, and nobody else's."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import pytest

from chaos.oracle import faults_of, runs_of
from chaos.rig import LEASE_SECONDS, MAX_ATTEMPTS, QUEUES, open_rig
from turnline.agent import AgentRegistry, Reply, RetryableAgentError, Turn
from turnline.errors import Code
from turnline.protocol import ChatEvent, ChatReply, Chunk, Failure
from turnline.runner import agent_run
from turnline.store import StoredReply

PATIENT_QUEUES = replace(QUEUES, ack_wait=300.0)


def code_of(reply: StoredReply) -> str:
    assert isinstance(reply.payload, Failure), reply
    return reply.payload.code


class PortAgent:
    """An agent that implements the port itself, with nothing of `@agent` between."""

    name = "port"
    description = ""

    def __init__(self, answer: Callable[[Turn], AsyncIterator[ChatEvent | Reply]]) -> None:
        self.run = answer


def registry_of(answer: Callable[[Turn], AsyncIterator[ChatEvent | Reply]]) -> AgentRegistry:
    registry = AgentRegistry()
    registry.register(PortAgent(answer))
    return registry


class Panic(BaseException):
    """What extension modules raise that give up, past every `except Exception`."""


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), KeyboardInterrupt(), Panic(), asyncio.CancelledError(), GeneratorExit()],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_an_agent_raises_is_tried_again_and_ends_nothing_but_its_turn(
    error: BaseException,
) -> None:
    async def fatal(turn: Turn) -> AsyncIterator[str]:
        yield "so far "
        if turn.prompt == "fatal":
            raise error

    async with open_rig() as rig:
        rig.speak = fatal
        rig.start_runner()

        turn, other = await rig.submit("s1", "fatal"), await rig.submit("s2", "other")
        reply, kept = await rig.answer(turn), await rig.answer(other)

        assert code_of(reply) == Code.AGENT_FAILED
        assert runs_of(rig.history, "fatal") == MAX_ATTEMPTS
        assert isinstance(kept.payload, ChatReply)
        assert faults_of(await rig.note_histories()) == []


async def test_an_agent_that_fails_before_its_first_item_does_not_hang_its_turn() -> None:
    def broken(turn: Turn) -> AsyncIterator[ChatEvent | Reply]:
        raise LookupError

    async with open_rig() as rig:
        rig.agents = registry_of(broken)
        rig.start_runner()

        reply = await rig.answer(await rig.submit("s1", "broken", budget=5.0))

        assert code_of(reply) == Code.AGENT_FAILED


async def test_an_error_whose_text_raises_is_an_error_like_others() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    async def unspeakable(turn: Turn) -> AsyncIterator[str]:
        if turn.prompt:
            raise Unspeakable
        yield ""

    async with open_rig() as rig:
        rig.speak = unspeakable
        rig.start_runner()

        reply = await rig.answer(await rig.submit("s1", "unspeakable"))

        assert code_of(reply) == Code.AGENT_FAILED


async def test_an_agent_left_behind_ends_once_it_has_said_what_it_had_to_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agent_run, "STOP_SECONDS", 0.05)
    stubborn_ended = asyncio.Event()

    async def stubborn(turn: Turn) -> AsyncIterator[str]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.1)
        for _ in range(agent_run.MAX_BUFFERED * 2):
            yield "word "
        stubborn_ended.set()

    async with open_rig() as rig:
        rig.speak = stubborn
        rig.start_runner()

        reply = await rig.answer(await rig.submit("s1", "stubborn", budget=0.2))

        assert code_of(reply) == Code.TURN_DEADLINE_EXCEEDED
        async with asyncio.timeout(30):
            await stubborn_ended.wait()


async def test_pieces_that_fit_one_by_one_are_streamed_however_fast_they_come() -> None:
    pieces = 40

    async def torrent(turn: Turn) -> AsyncIterator[str]:
        for _ in range(pieces):
            yield "x" * 50_000

    async with open_rig() as rig:
        rig.speak = torrent
        rig.start_runner()

        reply = await rig.answer(await rig.submit("s1", "torrent"))
        chunks = [item for item in rig.history.streams["torrent"] if isinstance(item, Chunk)]

        assert runs_of(rig.history, "torrent") == 1
        assert sum(len(chunk.delta) for chunk in chunks) == pieces * 50_000
        # The whole text is over what one message may hold.
        assert code_of(reply) == Code.PAYLOAD_TOO_LARGE


@pytest.mark.parametrize("streams", [True, False], ids=["one piece", "one reply"])
async def test_an_answer_too_large_to_send_fails_its_turn_once_and_leaves_no_history(
    streams: bool,
) -> None:
    async def huge(turn: Turn) -> AsyncIterator[str]:
        if turn.prompt == "huge" and streams:
            yield "x" * 2_000_000

    async with open_rig() as rig:
        rig.speak = huge
        rig.conclude = lambda _: Reply(text="" if streams else "y" * 2_000_000)
        rig.start_runner()

        reply = await rig.answer(await rig.submit("s1", "huge"))

        assert code_of(reply) == Code.PAYLOAD_TOO_LARGE
        assert runs_of(rig.history, "huge") == 1
        assert faults_of(await rig.note_histories()) == []


async def test_an_agent_that_blocks_the_loop_past_its_lease_is_not_run_for_ever() -> None:
    async def blocking(turn: Turn) -> AsyncIterator[str]:
        time.sleep(LEASE_SECONDS * 1.2)  # noqa: ASYNC251 - blocking the loop is the attack
        yield "too late"

    async with open_rig(PATIENT_QUEUES) as rig:
        rig.speak = blocking
        rig.start_runner()

        reply = await rig.answer(await rig.submit("s1", "blocking", budget=10.0))

        assert code_of(reply) == Code.AGENT_FAILED
        assert runs_of(rig.history, "blocking") == MAX_ATTEMPTS


@pytest.mark.parametrize("spends", [True, False], ids=["a retry", "a rate limit"])
@pytest.mark.parametrize("after", [3600.0, float("inf"), float("nan")])
async def test_no_pause_an_agent_asks_for_outlasts_its_turns_deadline(
    after: float, spends: bool
) -> None:
    async def later(turn: Turn) -> AsyncIterator[str]:
        if turn.prompt == "later":
            raise RetryableAgentError(retry_after=after, spends_attempt=spends)
        yield "fine"

    async with open_rig() as rig:
        rig.speak = later
        rig.start_runner()
        turn = await rig.submit("s1", "later", budget=0.3)
        following = await rig.submit("s1", "following")

        async with asyncio.timeout(30):
            reply = await rig.answer(turn)
            await rig.answer(following)

        assert isinstance(reply.payload, Failure)
