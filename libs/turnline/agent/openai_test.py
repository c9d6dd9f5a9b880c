"""Agents of the OpenAI Agents SDK, on a scripted model and on an HTTP provider that is ours."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import agents as sdk
import pytest
from agents.items import TResponseStreamEvent
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from openai import AsyncOpenAI

from turnline.agent import (
    AgentContractError,
    AgentRegistry,
    FatalAgentError,
    Reply,
    RetryableAgentError,
    Turn,
)
from turnline.agent.openai import OpenAIAgent, OpenAIModule
from turnline.agent.pauses import STATE_KEY
from turnline.errors import ConfigurationError
from turnline.protocol import Attachment, ChatEvent, EventType, JsonObject, TurnRecord

Items = list[ChatEvent | Reply]


@sdk.function_tool
def weather(city: str) -> str:
    """Say how the weather is."""
    return f"sunny in {city}"


@sdk.function_tool(needs_approval=True)
def refund(order: str) -> str:
    """Pay an order back."""
    return f"refunded {order}"


def call(name: str, arguments: Mapping[str, str], call_id: str = "c1") -> list[Any]:
    return [function_call(name, arguments, call_id=call_id, item_id=f"item-{call_id}")]


def says(text: str) -> list[Any]:
    return [assistant_message(text)]


def an_agent(
    steps: Sequence[Any], *, tools: Sequence[sdk.Tool] = (), **options: object
) -> tuple[OpenAIAgent, ScriptedModel]:
    model = ScriptedModel(steps)
    agent: sdk.Agent[Any] = sdk.Agent(name="helper", model=model, tools=list(tools), **options)  # type: ignore[arg-type]  # options of several types
    return OpenAIAgent(agent), model


def a_turn(prompt: str = "hello", **fields: object) -> Turn:
    return Turn(request_id="r1", session_id="s1", prompt=prompt, **fields)  # type: ignore[arg-type]  # fields of several types


def record(turn: Turn, reply: Reply) -> TurnRecord:
    return TurnRecord(
        request_id=turn.request_id,
        prompt=turn.prompt,
        reply=reply.text,
        agent="helper",
        at=0.0,
        items=reply.items,
    )


async def run(agent: OpenAIAgent, turn: Turn | None = None) -> Items:
    return [item async for item in agent.run(turn or a_turn())]


def kinds(items: Items) -> list[str]:
    return [item.type.value if isinstance(item, ChatEvent) else "reply" for item in items]


def events(items: Items, kind: EventType) -> list[ChatEvent]:
    return [item for item in items if isinstance(item, ChatEvent) and item.type is kind]


def answer(items: Items) -> Reply:
    assert isinstance(items[-1], Reply)
    return items[-1]


async def test_text_is_streamed_and_is_the_reply() -> None:
    agent, _ = an_agent([says("Hi there")])

    items = await run(agent)

    assert kinds(items)[0] == "message_start"
    assert kinds(items)[-2:] == ["message_end", "reply"]
    assert "".join(e.content for e in events(items, EventType.TEXT_DELTA)) == "Hi there"
    assert answer(items).text == "Hi there"


async def test_a_tool_call_and_its_result_are_streamed_once_each() -> None:
    agent, _ = an_agent([call("weather", {"city": "Oslo"}), says("Sunny")], tools=[weather])

    items = await run(agent)

    assert [kind for kind in kinds(items) if kind.startswith("tool")] == [
        "tool_call_start",
        "tool_call_args",
        "tool_call_end",
        "tool_call_result",
    ]
    assert events(items, EventType.TOOL_CALL_START)[0].name == "weather"
    assert events(items, EventType.TOOL_CALL_ARGS)[0].content == '{"city":"Oslo"}'
    assert events(items, EventType.TOOL_CALL_RESULT)[0].content == "sunny in Oslo"
    tool_events = [e for e in items if isinstance(e, ChatEvent) and "tool" in e.type.value]
    assert {event.tool_call_id for event in tool_events} == {"c1"}


async def test_the_next_turn_sees_call_and_result_of_the_one_before() -> None:
    agent, model = an_agent(
        [call("weather", {"city": "Oslo"}), says("Sunny"), says("As I said")], tools=[weather]
    )
    first = a_turn("How is Oslo?")
    reply = answer(await run(agent, first))

    await run(agent, a_turn("Again?", history=[record(first, reply)]))

    seen = model.calls[-1].input
    assert [item.get("type", item.get("role")) for item in seen] == [
        "user",
        "function_call",
        "function_call_output",
        "message",
        "user",
    ]
    assert seen[0]["content"] == "How is Oslo?"
    assert seen[2]["output"] == "sunny in Oslo"


async def test_a_turn_of_another_framework_is_seen_by_its_texts() -> None:
    agent, model = an_agent([says("ok")])
    other = TurnRecord(
        request_id="r0", prompt="2+2?", reply="4", agent="other", at=0.0, items=[{"langchain": {}}]
    )

    await run(agent, a_turn("and 3+3?", history=[other]))

    assert [item["content"] for item in model.calls[0].input] == ["2+2?", "4", "and 3+3?"]


async def test_text_of_several_messages_is_one_reply() -> None:
    step = [*says("Let me look."), *call("weather", {"city": "Oslo"})]
    agent, _ = an_agent([step, says("Sunny")], tools=[weather])

    items = await run(agent)

    assert answer(items).text == "Let me look.\n\nSunny"
    assert "".join(e.content for e in events(items, EventType.TEXT_DELTA)) == answer(items).text
    assert len(events(items, EventType.MESSAGE_START)) == 2
    assert len(events(items, EventType.MESSAGE_END)) == 2


async def test_a_tools_output_as_final_answer_is_streamed_too() -> None:
    agent, _ = an_agent(
        [call("weather", {"city": "Oslo"})],
        tools=[weather],
        tool_use_behavior="stop_on_first_tool",
    )

    items = await run(agent)

    assert answer(items).text == "sunny in Oslo"
    assert events(items, EventType.TEXT_DELTA)[0].content == "sunny in Oslo"


async def test_a_model_that_streams_no_pieces_still_gives_its_text() -> None:
    agent, _ = an_agent([ModelStep.stream(only_completed("Hi"))])

    items = await run(agent)

    assert answer(items).text == "Hi"
    assert kinds(items) == ["message_start", "text_delta", "message_end", "reply"]


def only_completed(text: str) -> Callable[[ModelCall], AsyncIterator[TResponseStreamEvent]]:
    async def stream(call: ModelCall) -> AsyncIterator[TResponseStreamEvent]:
        whole = ScriptedModel([says(text)])
        async for event in whole.stream_response(
            None,
            call.input,
            call.model_settings,
            [],
            None,
            [],
            call.tracing,
            previous_response_id=None,
            conversation_id=None,
            prompt=None,
        ):
            if event.type == "response.completed":
                yield event

    return stream


async def test_an_agent_that_takes_over_gets_a_step_and_answers() -> None:
    model = ScriptedModel([says("Bonjour")])
    french: sdk.Agent[Any] = sdk.Agent(name="french", model=model)
    agent, _ = an_agent([call("transfer_to_french", {})], handoffs=[french])

    items = await run(agent)

    assert answer(items).text == "Bonjour"
    assert [e.name for e in events(items, EventType.STEP_START)] == ["french"]
    assert [e.name for e in events(items, EventType.STEP_END)] == ["french"]
    assert kinds(items).index("tool_call_result") < kinds(items).index("step_start")


async def test_attachments_reach_the_model_and_only_links_stay_in_history() -> None:
    agent, model = an_agent([says("seen")])
    turn = a_turn(
        "What is this?",
        images=[Attachment(data="aGk=", name="cat.png", mime_type="image/png")],
        files=[Attachment(data="https://example.org/a.pdf", name="a.pdf")],
    )

    reply = answer(await run(agent, turn))

    assert model.calls[0].input[0]["content"] == [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"},
        {"type": "input_file", "file_url": "https://example.org/a.pdf"},
    ]
    kept = reply.items[0]["openai"]["content"]
    assert kept[1] == {"type": "input_text", "text": "[image attached: cat.png]"}
    assert kept[2] == {"type": "input_file", "file_url": "https://example.org/a.pdf"}


async def test_prebuilt_requests_reach_the_model() -> None:
    agent, model = an_agent([says("ok")])
    requests: list[JsonObject] = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]

    await run(agent, a_turn("", requests=requests))

    assert model.calls[0].input == [{"role": "user", "content": "one\n\ntwo"}]


@pytest.mark.parametrize(
    "fields",
    [
        {"images": [Attachment(data="s3://bucket/key", name="x")]},
        {"requests": [{"type": "voice"}]},
    ],
)
async def test_what_no_provider_can_read_is_refused(fields: dict[str, object]) -> None:
    agent, model = an_agent([says("never")])

    with pytest.raises(FatalAgentError) as caught:
        await run(agent, a_turn("hello", **fields))

    assert caught.value.status_code == 400
    assert not model.calls


async def test_tools_find_the_turn_as_their_context() -> None:
    @sdk.function_tool
    def who(context: sdk.RunContextWrapper[Turn]) -> str:
        """Say who asks."""
        return context.context.user_id

    agent, _ = an_agent([call("who", {}), says("ok")], tools=[who])

    items = await run(agent, a_turn(user_id="ada"))

    assert events(items, EventType.TOOL_CALL_RESULT)[0].content == "ada"


async def test_a_tool_that_needs_approval_pauses_the_run() -> None:
    agent, _ = an_agent([call("refund", {"order": "7"})], tools=[refund])
    turn = a_turn("Pay back 7")

    items = await run(agent, turn)

    reply = answer(items)
    interruption = {
        "id": "c1",
        "type": "tool_approval",
        "tool_name": "refund",
        "arguments": '{"order":"7"}',
    }
    assert reply.status_code == 202
    assert reply.extra == {
        "status": "PAUSED",
        "run_id": "r1",
        "agent": "helper",
        "interruptions": [interruption],
    }
    assert kinds(items)[-2:] == ["run_paused", "reply"]
    assert "r1" in turn.state[STATE_KEY]


@pytest.mark.parametrize(
    ("decision", "output"),
    [
        ({"status": "approved"}, "refunded 7"),
        ({"status": "denied", "message": "not this week"}, "not this week"),
    ],
)
async def test_a_decision_resumes_the_run_on_another_runner(
    decision: JsonObject, output: str
) -> None:
    paused_agent, _ = an_agent([call("refund", {"order": "7"})], tools=[refund])
    paused = a_turn("Pay back 7")
    paused_reply = answer(await run(paused_agent, paused))
    agent, model = an_agent([says("Done"), says("Yes")], tools=[refund])
    resumed = a_turn(
        "",
        history=[record(paused, paused_reply)],
        state=paused.state,
        resume={"run_id": "r1", "decisions": [{"id": "c1", **decision}]},
    )

    reply = answer(await run(agent, resumed))
    history = [record(paused, paused_reply), record(resumed, reply)]
    await run(agent, a_turn("Is it done?", history=history))

    assert reply == Reply(text="Done", items=reply.items)
    assert resumed.state[STATE_KEY] == {}
    seen = model.calls[-1].input
    assert [item.get("type", item.get("role")) for item in seen] == [
        "user",
        "function_call",
        "function_call_output",
        "message",
        "user",
    ]
    assert seen[2]["output"] == output


@pytest.mark.parametrize(
    ("resume", "status"),
    [
        ({"run_id": "nope", "decisions": [{"id": "c1", "status": "approved"}]}, 404),
        ({"run_id": "r1"}, 400),
        ({"run_id": "r1", "decisions": [{"status": "approved"}]}, 400),
        ({"run_id": "r1", "decisions": [{"id": "c1", "status": "perhaps"}]}, 400),
    ],
)
async def test_a_resume_that_fits_no_paused_run_is_refused(resume: JsonObject, status: int) -> None:
    agent, _ = an_agent([call("refund", {"order": "7"})], tools=[refund])
    paused = a_turn()
    await run(agent, paused)

    with pytest.raises(FatalAgentError) as caught:
        await run(agent, a_turn("", state=paused.state, resume=resume))

    assert caught.value.status_code == status


async def test_too_many_steps_end_the_turn() -> None:
    steps = [call("weather", {"city": "Oslo"}, call_id=f"c{n}") for n in range(20)]
    agent, _ = an_agent(steps, tools=[weather])

    with pytest.raises(FatalAgentError, match="too many steps"):
        await run(agent)


async def test_a_guardrail_ends_the_turn_without_detail() -> None:
    @sdk.input_guardrail
    async def refuses(
        context: sdk.RunContextWrapper[Any], agent: sdk.Agent[Any], said: object
    ) -> sdk.GuardrailFunctionOutput:
        return sdk.GuardrailFunctionOutput(output_info="internal", tripwire_triggered=True)

    agent, _ = an_agent([says("never")], input_guardrails=[refuses])

    with pytest.raises(FatalAgentError) as caught:
        await run(agent)

    assert caught.value.status_code == 400
    assert caught.value.message == "The agent does not take this request"


async def test_an_unknown_tool_is_the_models_mistake_and_worth_another_try() -> None:
    agent, _ = an_agent([call("nothing_like_it", {})])

    with pytest.raises(RetryableAgentError) as caught:
        await run(agent)

    assert caught.value.spends_attempt


async def test_wrong_use_of_the_sdk_names_the_agent_in_the_log_only() -> None:
    agent, _ = an_agent([sdk.UserError("tool schema is broken")])

    with pytest.raises(AgentContractError) as caught:
        await run(agent)

    assert "'helper'" in str(caught.value)
    assert caught.value.message == "The agent failed"


async def test_a_turn_that_is_stopped_stops_the_model() -> None:
    began, stopped = asyncio.Event(), asyncio.Event()

    async def hangs(call: ModelCall) -> AsyncIterator[TResponseStreamEvent]:
        began.set()
        try:
            await asyncio.Event().wait()
            async for event in only_pieces("never")(call):
                yield event
        finally:
            stopped.set()

    agent, _ = an_agent([ModelStep.stream(hangs)])
    async with asyncio.TaskGroup() as group:
        task = group.create_task(run(agent))
        await began.wait()
        task.cancel()

    assert stopped.is_set()


async def test_closing_a_run_in_mid_stream_stops_the_model() -> None:
    stopped = asyncio.Event()

    async def hangs_later(call: ModelCall) -> AsyncIterator[TResponseStreamEvent]:
        try:
            async for event in only_pieces("Hi")(call):
                yield event
            await asyncio.Event().wait()
        finally:
            stopped.set()

    agent, _ = an_agent([ModelStep.stream(hangs_later)])
    items = agent.run(a_turn())
    await anext(items)
    await items.aclose()  # type: ignore[attr-defined]  # an async generator, typed by the port

    assert stopped.is_set()


def only_pieces(text: str) -> Callable[[ModelCall], AsyncIterator[TResponseStreamEvent]]:
    async def stream(call: ModelCall) -> AsyncIterator[TResponseStreamEvent]:
        whole = ScriptedModel([says(text)])
        async for event in whole.stream_response(
            None,
            call.input,
            call.model_settings,
            [],
            None,
            [],
            call.tracing,
            previous_response_id=None,
            conversation_id=None,
            prompt=None,
        ):
            if event.type == "response.output_text.delta":
                yield event

    return stream


@asynccontextmanager
async def provider(status: int, headers: str = "", body: str = "{}") -> AsyncIterator[str]:
    """Serve one HTTP answer to whoever asks; gives the base URL."""

    async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.partition(b":")[2])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        )
        await reader.readexactly(length)
        writer.write(
            f"HTTP/1.1 {status} x\r\n{headers}content-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n{body}".encode()
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answers, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def error_from(base_url: str) -> Exception:
    async with AsyncOpenAI(base_url=base_url, api_key="test", max_retries=0) as client:
        model = sdk.OpenAIResponsesModel(model="any", openai_client=client)
        agent: sdk.Agent[Any] = sdk.Agent(name="helper", model=model)
        with pytest.raises((RetryableAgentError, FatalAgentError)) as caught:
            await run(OpenAIAgent(agent))
    return caught.value


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ("retry-after: 7\r\n", 7.0),
        ("retry-after-ms: 250\r\n", 0.25),
        (
            "date: Mon, 30 Nov 2026 10:00:00 GMT\r\n"
            "retry-after: Mon, 30 Nov 2026 10:00:20 GMT\r\n",
            20.0,
        ),
        ("retry-after: soon\r\n", None),
        ("retry-after: 1e9\r\n", 3600.0),
        ("", None),
    ],
)
async def test_a_rate_limit_spends_no_attempt_and_says_how_long(
    headers: str, seconds: float | None
) -> None:
    async with provider(429, headers) as url:
        error = await error_from(url)

    assert isinstance(error, RetryableAgentError)
    assert (error.spends_attempt, error.retry_after) == (False, seconds)


@pytest.mark.parametrize("status", [408, 409, 500, 503])
async def test_a_provider_in_trouble_is_worth_another_attempt(status: int) -> None:
    async with provider(status) as url:
        error = await error_from(url)

    assert isinstance(error, RetryableAgentError)
    assert error.spends_attempt


async def test_a_provider_that_is_away_is_worth_another_attempt() -> None:
    async with provider(500) as url:
        gone = url

    assert isinstance(await error_from(gone), RetryableAgentError)


@pytest.mark.parametrize(
    ("status", "code", "shown"),
    [
        (400, "invalid_prompt", 500),
        (400, "context_length_exceeded", 413),
        (401, "invalid_api_key", 500),
        (403, "no_access", 500),
        (404, "model_not_found", 500),
        (429, "insufficient_quota", 503),
    ],
)
async def test_a_refusal_ends_the_turn_without_the_providers_words(
    status: int, code: str, shown: int
) -> None:
    body = f'{{"error": {{"message": "secret sk-123", "type": "x", "code": "{code}"}}}}'
    async with provider(status, body=body) as url:
        error = await error_from(url)

    assert isinstance(error, FatalAgentError)
    assert error.status_code == shown
    assert "secret" not in error.message


async def test_the_sdk_traces_nothing_unless_asked() -> None:
    agent, model = an_agent([says("ok")])

    await run(agent)

    assert model.calls[0].tracing.is_disabled()


def test_a_module_registers_sdk_agents_by_name() -> None:
    registry = AgentRegistry()
    first: sdk.Agent[Any] = sdk.Agent(name="first", handoff_description="Knows firsts")
    second: sdk.Agent[Any] = sdk.Agent(name="second")

    OpenAIModule([first, OpenAIAgent(second, max_steps=3)], registry=registry)

    assert registry.names() == ("first", "second")
    assert registry.get().description == "Knows firsts"


def test_a_module_refuses_a_name_that_is_taken() -> None:
    first: sdk.Agent[Any] = sdk.Agent(name="same")

    with pytest.raises(ConfigurationError, match="registered already"):
        OpenAIModule([first, first], registry=AgentRegistry())
