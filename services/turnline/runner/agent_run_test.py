"""Driving one agent: batches, back-pressure, and agents that do not stop."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from turnline.agent import AgentContractError, Reply, Turn
from turnline.protocol import ChatEvent, EventType
from turnline.runner import agent_run
from turnline.runner.agent_run import MAX_BUFFERED, AgentRun, running
from turnline.telemetry import captured_logs

Answer = Callable[[Turn], AsyncIterator[ChatEvent | Reply]]


class PortAgent:
    """An agent that implements the port itself."""

    name = "port"
    description = ""

    def __init__(self, answer: Answer) -> None:
        self.run = answer


def a_turn() -> Turn:
    return Turn(request_id="r", session_id="s", prompt="p")


def event(text: str) -> ChatEvent:
    return ChatEvent(type=EventType.TEXT_DELTA, content=text)


async def driven(answer: Answer, *, wants_events: bool = True) -> tuple[AgentRun, list[str]]:
    """Run an agent to its end and read all it says."""
    said: list[str] = []
    async with (
        asyncio.timeout(30),
        running(PortAgent(answer), a_turn(), wants_events=wants_events) as run,
    ):
        async for batch in run.batches():
            said += [one.content for one in batch]
    return run, said


async def three(_: Turn) -> AsyncIterator[ChatEvent | Reply]:
    for text in "abc":
        yield event(text)
    yield Reply(text="abc")


async def test_what_an_agent_says_is_handed_over_in_order_with_its_reply() -> None:
    run, said = await driven(three)

    assert (said, run.reply, run.error) == (["a", "b", "c"], Reply(text="abc"), None)


async def test_events_nobody_wants_are_not_kept() -> None:
    run, said = await driven(three, wants_events=False)

    assert (said, run.reply) == ([], Reply(text="abc"))


async def test_what_was_said_before_an_error_is_handed_over() -> None:
    async def broken(_: Turn) -> AsyncIterator[ChatEvent | Reply]:
        yield event("a")
        raise LookupError("no")

    run, said = await driven(broken)

    assert (said, run.reply) == (["a"], None)
    assert isinstance(run.error, LookupError)


async def test_an_agent_waits_for_its_reader() -> None:
    spoken = 0

    async def endless(_: Turn) -> AsyncIterator[ChatEvent | Reply]:
        nonlocal spoken
        while True:
            spoken += 1
            yield event("x")

    async with running(PortAgent(endless), a_turn(), wants_events=True) as run:
        batches = run.batches()
        first = await anext(batches)
        second = await anext(batches)
        for _ in range(100):
            await asyncio.sleep(0)

    assert len(first) <= MAX_BUFFERED
    assert len(second) <= MAX_BUFFERED
    assert spoken <= 3 * MAX_BUFFERED + 1


@pytest.mark.parametrize("more", [event("x"), Reply(text="another")], ids=["event", "reply"])
async def test_a_reply_is_the_last_an_agent_may_say(more: ChatEvent | Reply) -> None:
    async def talkative(_: Turn) -> AsyncIterator[ChatEvent | Reply]:
        yield event("a")
        yield Reply(text="a")
        yield more

    run, said = await driven(talkative)

    assert said == ["a"]
    assert isinstance(run.error, AgentContractError)


async def test_an_agent_that_is_left_early_is_stopped_and_closed() -> None:
    closed = asyncio.Event()

    async def endless(turn: Turn) -> AsyncIterator[ChatEvent | Reply]:
        try:
            yield event("a")
            await asyncio.Event().wait()
        finally:
            assert turn.cancelled.is_set()
            closed.set()

    with pytest.raises(ValueError, match="left"):
        async with running(PortAgent(endless), a_turn(), wants_events=True) as run:
            await anext(run.batches())
            raise ValueError("left")

    assert closed.is_set()


async def test_an_agent_that_ignores_cancellation_is_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agent_run, "STOP_SECONDS", 0.01)
    release, started = asyncio.Event(), asyncio.Event()

    async def stubborn(_: Turn) -> AsyncIterator[ChatEvent | Reply]:
        started.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        yield Reply(text="too late")

    with captured_logs() as logs, pytest.raises(ValueError, match="left"):
        async with running(PortAgent(stubborn), a_turn(), wants_events=True):
            await started.wait()
            raise ValueError("left")
    release.set()

    assert [record["event"] for record in logs] == ["agent.stuck"]


async def test_what_is_said_in_a_quick_row_travels_together_and_the_end_waits_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agent_run, "PACE_SECONDS", 3600.0)
    first_was_read = asyncio.Event()

    async def answer(_: Turn) -> AsyncIterator[ChatEvent | Reply]:
        yield event("a")
        await first_was_read.wait()
        for text in "bcd":
            yield event(text)
            await asyncio.sleep(0)
        yield Reply(text="abcd")

    batches: list[list[str]] = []
    async with asyncio.timeout(30), running(PortAgent(answer), a_turn(), wants_events=True) as run:
        async for batch in run.batches():
            batches.append([one.content for one in batch])
            first_was_read.set()

    assert batches == [["a"], ["b", "c", "d"]]
