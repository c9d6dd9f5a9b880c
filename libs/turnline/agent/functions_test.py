"""Agents made of functions: what they may be, what they stream, what they must not answer."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from turnline.agent import (
    AgentContractError,
    AgentRegistry,
    FunctionAgent,
    Reply,
    RetryableAgentError,
    Turn,
    agent,
    default_registry,
)
from turnline.errors import ConfigurationError
from turnline.protocol import ChatEvent, EventType

Items = list[ChatEvent | Reply]


def a_turn(prompt: str = "hello") -> Turn:
    return Turn(request_id="r1", session_id="s1", prompt=prompt)


def made(function: Callable[[Turn], object]) -> FunctionAgent[object]:
    return agent(registry=AgentRegistry())(function)


async def run(function: Callable[[Turn], object], turn: Turn | None = None) -> Items:
    return [item async for item in made(function).run(turn or a_turn())]


def kinds(items: Items) -> list[str]:
    return [item.type.value if isinstance(item, ChatEvent) else "reply" for item in items]


def answer(items: Items) -> Reply:
    assert isinstance(items[-1], Reply)
    return items[-1]


async def returns_text(turn: Turn) -> str:
    """Echoes.

    Not part of the description.
    """
    return f"you said {turn.prompt}"


async def streams(turn: Turn) -> AsyncIterator[str]:
    yield "you said "
    yield turn.prompt


async def test_an_async_function_answers_with_what_it_returns() -> None:
    assert await run(returns_text) == [Reply(text="you said hello")]


async def test_a_sync_function_answers_from_a_thread() -> None:
    def where(turn: Turn) -> str:
        return threading.current_thread().name

    assert await run(where) == [Reply(text="turnline-agent")]


async def test_an_async_generator_streams_one_message_and_ends_with_its_text() -> None:
    items = await run(streams)

    assert kinds(items) == ["message_start", "text_delta", "text_delta", "message_end", "reply"]
    events = [item for item in items if isinstance(item, ChatEvent)]
    assert events[0].role == "assistant"
    assert [event.content for event in events] == ["", "you said ", "hello", ""]
    assert {event.message_id for event in events} == {events[0].message_id}
    assert len(bytes.fromhex(events[0].message_id)) == 16
    assert answer(items).text == "you said hello"


async def test_a_sync_generator_streams_as_an_async_one_does() -> None:
    def words(turn: Turn) -> Iterator[str]:
        yield "you "
        yield "said"

    items = await run(words)

    assert kinds(items) == ["message_start", "text_delta", "text_delta", "message_end", "reply"]
    assert answer(items).text == "you said"


async def test_empty_pieces_make_no_event() -> None:
    async def silent(turn: Turn) -> AsyncIterator[str]:
        yield ""

    assert await run(silent) == [Reply(text="")]


async def test_a_dict_gives_the_text_and_further_keys_of_the_body() -> None:
    async def answers(turn: Turn) -> dict[str, Any]:
        return {"result": "4", "confidence": 0.9}

    assert await run(answers) == [Reply(text="4", extra={"confidence": 0.9})]


async def test_an_agents_own_events_go_out_between_its_text() -> None:
    call = ChatEvent(type=EventType.TOOL_CALL_START, tool_call_id="c1", name="look")

    async def works(turn: Turn) -> AsyncIterator[str | ChatEvent]:
        yield "a"
        yield call
        yield ChatEvent(type=EventType.TEXT_DELTA, content="b")

    items = await run(works)

    assert call in items
    assert kinds(items)[:4] == ["message_start", "text_delta", "tool_call_start", "text_delta"]
    assert answer(items).text == "ab"


async def test_messages_that_an_agent_opens_itself_are_kept() -> None:
    async def works(turn: Turn) -> AsyncIterator[str | ChatEvent]:
        yield ChatEvent(type=EventType.MESSAGE_START, message_id="m1", role="assistant")
        yield "a"
        yield ChatEvent(type=EventType.TEXT_DELTA, message_id="m1", content="b")
        yield ChatEvent(type=EventType.MESSAGE_END, message_id="m1")

    items = await run(works)

    assert kinds(items) == ["message_start", "text_delta", "text_delta", "message_end", "reply"]
    assert all(item.message_id == "m1" for item in items if isinstance(item, ChatEvent))
    assert answer(items).text == "ab"


async def test_a_last_reply_adds_to_streamed_text() -> None:
    async def works(turn: Turn) -> AsyncIterator[str | Reply]:
        yield "done"
        yield Reply(text="", extra={"sources": ["a.md"]}, items=[{"k": 1}])

    assert answer(await run(works)) == Reply(
        text="done", extra={"sources": ["a.md"]}, items=[{"k": 1}]
    )


async def test_text_no_wire_format_can_carry_is_made_storable() -> None:
    async def half(turn: Turn) -> str:
        return "a\ud800b"

    assert answer(await run(half)).text == "a\ufffdb"


class NoJson:
    pass


def bad(value: object) -> Callable[[Turn], object]:
    async def named(turn: Turn) -> object:
        return value

    return named


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (None, "returned a NoneType"),
        (5, "returned a int"),
        ({"answer": "x"}, "without a text under 'result'"),
        ({"result": 5}, "without a text under 'result'"),
        ({"result": "x", "session_id": "s"}, "'session_id', which Turnline sets"),
        ({"result": "x", "a": [1, {"b": NoJson()}]}, "extra['a'][1]['b'] is a NoJson"),
        ({"result": "x", "a": float("nan")}, "extra['a'] is nan"),
        ({"result": "x", 1: 2}, "key 1, which is no string"),
        (Reply(text="x", status_code=99), "status_code is 99"),
        (Reply(text="x", items=[{"a": {1}}]), "items[0]['a'] is a set"),
    ],
)
async def test_a_wrong_answer_names_the_agent_and_tells_the_caller_nothing(
    value: object, part: str
) -> None:
    with pytest.raises(AgentContractError) as caught:
        await run(bad(value))

    assert str(caught.value).startswith("agent 'named' ")
    assert part in str(caught.value)
    assert (caught.value.message, caught.value.status_code) == ("The agent failed", 500)


async def test_a_value_that_holds_itself_is_refused() -> None:
    loop: dict[str, Any] = {"result": "x"}
    loop["self"] = loop

    with pytest.raises(AgentContractError, match="nested too deeply"):
        await run(bad(loop))


async def test_a_yielded_number_is_refused() -> None:
    async def counts(turn: Turn) -> AsyncIterator[int]:
        yield 1

    with pytest.raises(AgentContractError, match="yielded a int"):
        await run(counts)


async def test_nothing_may_follow_the_reply() -> None:
    async def goes_on(turn: Turn) -> AsyncIterator[str | Reply]:
        yield Reply(text="x")
        yield "more"

    with pytest.raises(AgentContractError, match="after its Reply"):
        await run(goes_on)


async def test_a_reply_that_contradicts_the_stream_is_refused() -> None:
    async def contradicts(turn: Turn) -> AsyncIterator[str | Reply]:
        yield "yes"
        yield Reply(text="no")

    with pytest.raises(AgentContractError, match="differs from what it streamed"):
        await run(contradicts)


async def test_a_sync_function_that_returns_a_coroutine_is_refused() -> None:
    with pytest.raises(AgentContractError, match="make it an async def"):
        await run(lambda turn: returns_text(turn))


async def test_a_state_that_is_no_json_is_refused() -> None:
    async def forgets(turn: Turn) -> str:
        turn.state["when"] = NoJson()
        return "ok"

    with pytest.raises(AgentContractError, match=r"state\['when'\] is a NoJson"):
        await run(forgets)


@pytest.mark.parametrize("sync", [True, False])
async def test_an_agents_own_error_comes_through(sync: bool) -> None:
    error = RetryableAgentError("over the rate", retry_after=3.0, spends_attempt=False)

    def fails(turn: Turn) -> str:
        raise error

    async def fails_later(turn: Turn) -> str:
        raise error

    with pytest.raises(RetryableAgentError) as caught:
        await run(fails if sync else fails_later)

    assert caught.value is error


async def test_a_cancelled_sync_agent_sees_the_flag() -> None:
    began = threading.Event()
    saw = threading.Event()
    tick = threading.Event()

    def looks(turn: Turn) -> str:
        began.set()
        while not turn.cancelled.is_set():
            tick.wait(0.001)
        saw.set()
        return ""

    async def reading() -> None:
        await run(looks)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(reading())
        await asyncio.to_thread(began.wait, 5.0)
        task.cancel()

    assert saw.is_set()


async def test_closing_a_run_closes_the_agents_generator() -> None:
    closed = asyncio.Event()

    async def forever(turn: Turn) -> AsyncIterator[str]:
        try:
            while True:
                yield "x"
        finally:
            closed.set()

    items = made(forever).run(a_turn())
    await anext(items)
    await items.aclose()  # type: ignore[attr-defined]  # an async generator, typed by the port

    assert closed.is_set()


async def test_the_decorated_function_stays_callable() -> None:
    plain = agent(registry=AgentRegistry())(returns_text)

    assert await plain(a_turn("x")) == "you said x"
    assert plain.__name__ == "returns_text"  # type: ignore[attr-defined]  # set by update_wrapper


def test_name_and_description_come_from_the_function_or_the_decorator() -> None:
    registry = AgentRegistry()

    bare = agent(registry=registry)(returns_text)
    given = agent("echo", description="Says it again", registry=registry)(streams)

    assert (bare.name, bare.description) == ("returns_text", "Echoes.")
    assert (given.name, given.description) == ("echo", "Says it again")
    assert registry.names() == ("returns_text", "echo")


def test_the_bare_decorator_registers_for_the_process() -> None:
    @agent
    async def registered_by_functions_test(turn: Turn) -> str:
        return ""

    assert default_registry.get("registered_by_functions_test") is registered_by_functions_test


def no_parameter() -> str:
    return ""


def two_parameters(turn: Turn, other: str = "") -> str:
    return other


def keyword_only(*, turn: Turn) -> str:
    return ""


def takes_text(prompt: str) -> str:
    return prompt


@pytest.mark.parametrize(
    ("function", "part"),
    [
        (no_parameter, "exactly one parameter, the turn; this is no_parameter()"),
        (two_parameters, "exactly one parameter"),
        (keyword_only, "exactly one parameter"),
        (takes_text, "gets a Turn, not a str; the message is turn.prompt"),
    ],
)
def test_a_function_that_cannot_take_a_turn_is_refused_when_decorated(
    function: Callable[[Turn], str], part: str
) -> None:
    registry = AgentRegistry()

    with pytest.raises(ConfigurationError) as caught:
        agent("named", registry=registry)(function)

    assert "agent 'named'" in caught.value.faults[0]
    assert part in caught.value.faults[0]
    assert registry.names() == ()
