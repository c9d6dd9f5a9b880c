"""LangGraph graphs as agents, with a chat model that says what a test wrote down."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, TypedDict

import pytest
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import interrupt
from pydantic import Field

from turnline.agent import (
    AgentContractError,
    AgentRegistry,
    FatalAgentError,
    Reply,
    RetryableAgentError,
    Turn,
)
from turnline.agent.langgraph import LangGraphAgent, LangGraphModule, _dump, _load
from turnline.agent.pauses import STATE_KEY
from turnline.protocol import Attachment, ChatEvent, EventType, JsonObject, TurnRecord

Items = list[ChatEvent | Reply]
Graph = CompiledStateGraph[Any, Any, Any, Any]


class ScriptedChat(BaseChatModel):
    """Streams one scripted answer per call and remembers what it was asked."""

    script: list[list[AIMessageChunk] | Exception] = Field(default_factory=list)
    asked: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> ChatResult:
        raise NotImplementedError

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> AsyncIterator[ChatGenerationChunk]:
        self.asked.append(list(messages))
        step = self.script.pop(0)
        if isinstance(step, Exception):
            raise step
        for piece in step:
            chunk = ChatGenerationChunk(message=piece)
            if run_manager:
                await run_manager.on_llm_new_token(str(piece.text), chunk=chunk)
            yield chunk


def says(*pieces: str) -> list[AIMessageChunk]:
    return [AIMessageChunk(content=piece) for piece in pieces]


def calls(name: str, *arguments: str, call_id: str = "c1") -> list[AIMessageChunk]:
    first, *rest = arguments
    return [
        AIMessageChunk(
            content="",
            tool_call_chunks=[tool_call_chunk(name=name, args=first, id=call_id, index=0)],
        ),
        *(
            AIMessageChunk(content="", tool_call_chunks=[tool_call_chunk(args=piece, index=0)])
            for piece in rest
        ),
    ]


@tool
def weather(city: str) -> str:
    """Say how the weather is."""
    return f"sunny in {city}"


@tool
def refund(order: str) -> str:
    """Pay an order back, once a person agrees."""
    decision = interrupt({"order": order})
    return f"refunded {order}" if decision["status"] == "approved" else decision["message"]


def chat_graph(model: ScriptedChat) -> Graph:
    async def chat(state: MessagesState) -> dict[str, list[BaseMessage]]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("chat", chat)
    builder.add_node("tools", ToolNode([weather, refund]))
    builder.add_edge(START, "chat")
    builder.add_conditional_edges("chat", tools_condition)
    builder.add_edge("tools", "chat")
    return builder.compile()


def an_agent(*script: list[AIMessageChunk] | Exception) -> tuple[LangGraphAgent, ScriptedChat]:
    model = ScriptedChat(script=list(script))
    return LangGraphAgent("helper", chat_graph(model)), model


def node_agent(node: Any) -> LangGraphAgent:  # noqa: ANN401 - what LangGraph takes as a node
    builder = StateGraph(MessagesState)
    builder.add_node("node", node)
    builder.add_edge(START, "node")
    builder.add_edge("node", END)
    return LangGraphAgent("helper", builder.compile())


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


async def run(agent: LangGraphAgent, turn: Turn | None = None) -> Items:
    return [item async for item in agent.run(turn or a_turn())]


def kinds(items: Items) -> list[str]:
    return [item.type.value if isinstance(item, ChatEvent) else "reply" for item in items]


def events(items: Items, kind: EventType) -> list[ChatEvent]:
    return [item for item in items if isinstance(item, ChatEvent) and item.type is kind]


def answer(items: Items) -> Reply:
    assert isinstance(items[-1], Reply)
    return items[-1]


def said(messages: Sequence[BaseMessage]) -> list[tuple[str, str]]:
    return [(message.type, str(message.text)) for message in messages]


async def test_tokens_are_streamed_as_one_message_and_are_the_reply() -> None:
    agent, _ = an_agent(says("Hi ", "there"))

    items = await run(agent)

    assert kinds(items) == ["message_start", "text_delta", "text_delta", "message_end", "reply"]
    assert answer(items).text == "Hi there"


async def test_a_message_that_a_node_returns_whole_is_streamed_too() -> None:
    agent = node_agent(lambda _: {"messages": [AIMessage("whole")]})

    items = await run(agent)

    assert kinds(items) == ["message_start", "text_delta", "message_end", "reply"]
    assert answer(items).text == "whole"


async def test_a_tool_call_and_its_result_are_streamed_once_each() -> None:
    agent, _ = an_agent(calls("weather", '{"city":', '"Oslo"}'), says("Sunny"))

    items = await run(agent)

    assert [kind for kind in kinds(items) if kind.startswith("tool")] == [
        "tool_call_start",
        "tool_call_args",
        "tool_call_args",
        "tool_call_end",
        "tool_call_result",
    ]
    assert events(items, EventType.TOOL_CALL_START)[0].name == "weather"
    arguments = "".join(e.content for e in events(items, EventType.TOOL_CALL_ARGS))
    assert arguments == '{"city":"Oslo"}'
    assert events(items, EventType.TOOL_CALL_RESULT)[0].content == "sunny in Oslo"
    assert answer(items).text == "Sunny"


async def test_calls_in_a_whole_message_are_streamed() -> None:
    call = {"name": "weather", "args": {"city": "Oslo"}, "id": "c1"}
    agent = node_agent(lambda _: {"messages": [AIMessage("", tool_calls=[call])]})

    items = await run(agent)

    assert kinds(items) == ["tool_call_start", "tool_call_args", "tool_call_end", "reply"]
    assert events(items, EventType.TOOL_CALL_ARGS)[0].content == '{"city":"Oslo"}'


async def test_reasoning_is_streamed_apart_from_the_answer() -> None:
    thought = AIMessageChunk(content=[{"type": "reasoning", "reasoning": "hm"}])
    agent, _ = an_agent([thought, AIMessageChunk(content=[{"type": "text", "text": "Yes"}])])

    items = await run(agent)

    assert kinds(items)[:4] == [
        "reasoning_start",
        "reasoning_delta",
        "reasoning_end",
        "message_start",
    ]
    assert answer(items).text == "Yes"


async def test_the_next_turn_sees_call_and_result_of_the_one_before() -> None:
    agent, model = an_agent(calls("weather", '{"city":"Oslo"}'), says("Sunny"), says("As I said"))
    first = a_turn("How is Oslo?")
    reply = answer(await run(agent, first))

    items = await run(
        agent,
        Turn(request_id="r2", session_id="s1", prompt="Again?", history=[record(first, reply)]),
    )

    assert said(model.asked[-1]) == [
        ("human", "How is Oslo?"),
        ("ai", ""),
        ("tool", "sunny in Oslo"),
        ("ai", "Sunny"),
        ("human", "Again?"),
    ]
    assert answer(items).text == "As I said"
    assert len(answer(items).items) == 2


async def test_a_turn_of_another_framework_is_seen_by_its_texts() -> None:
    agent, model = an_agent(says("ok"))
    other = TurnRecord(
        request_id="r0", prompt="2+2?", reply="4", agent="other", at=0.0, items=[{"openai": {}}]
    )

    await run(agent, a_turn("and 3+3?", history=[other]))

    assert said(model.asked[0]) == [("human", "2+2?"), ("ai", "4"), ("human", "and 3+3?")]


async def test_attachments_reach_the_model_and_only_links_stay_in_history() -> None:
    agent, model = an_agent(says("seen"))
    turn = a_turn(
        "What is this?",
        images=[Attachment(data="aGk=", name="cat.png", mime_type="image/png")],
        files=[Attachment(data="https://example.org/a.pdf", name="a.pdf")],
    )

    reply = answer(await run(agent, turn))

    link = {"type": "file", "url": "https://example.org/a.pdf"}
    assert model.asked[0][0].content == [
        {"type": "text", "text": "What is this?"},
        {"type": "image", "base64": "aGk=", "mime_type": "image/png", "filename": "cat.png"},
        link,
    ]
    kept = reply.items[0]["langchain"]["data"]["content"]
    assert kept[1:] == [{"type": "text", "text": "[image attached: cat.png]"}, link]


async def test_tokens_of_a_subgraph_are_streamed() -> None:
    inner = chat_graph(ScriptedChat(script=[says("from ", "inside")]))
    agent = node_agent(inner)

    items = await run(agent)

    assert answer(items).text == "from inside"
    assert len(events(items, EventType.TEXT_DELTA)) == 2


async def test_a_model_kept_back_is_not_streamed() -> None:
    router = ScriptedChat(script=[says("billing")], tags=["nostream"])

    async def node(state: MessagesState) -> dict[str, list[BaseMessage]]:
        route = await router.ainvoke(state["messages"])
        return {"messages": [AIMessage(f"To {route.text}!")]}

    items = await run(node_agent(node))

    assert answer(items).text == "To billing!"


async def test_an_interrupt_pauses_the_run() -> None:
    agent, _ = an_agent(calls("refund", '{"order":"7"}'))
    turn = a_turn("Pay back 7")

    items = await run(agent, turn)

    reply = answer(items)
    [interruption] = reply.extra["interruptions"]
    assert reply.status_code == 202
    assert (reply.extra["status"], reply.extra["run_id"]) == ("PAUSED", "r1")
    assert (interruption["type"], interruption["value"]) == ("interrupt", {"order": "7"})
    assert kinds(items)[-2:] == ["run_paused", "reply"]
    assert "r1" in turn.state[STATE_KEY]


def resume_turn(paused: Turn, reply: Reply, decision: Mapping[str, object]) -> Turn:
    [interruption] = reply.extra["interruptions"]
    return Turn(
        request_id="r2",
        session_id="s1",
        prompt="",
        history=[record(paused, reply)],
        state=paused.state,
        resume={"run_id": "r1", "decisions": [{"id": interruption["id"], **decision}]},
    )


@pytest.mark.parametrize(
    ("decision", "output"),
    [
        ({"status": "approved"}, "refunded 7"),
        ({"status": "denied", "message": "not this week"}, "not this week"),
        ({"payload": {"status": "approved"}}, "refunded 7"),
    ],
)
async def test_a_decision_resumes_the_run_on_another_runner(
    decision: JsonObject, output: str
) -> None:
    paused_agent, _ = an_agent(calls("refund", '{"order":"7"}'))
    paused = a_turn("Pay back 7")
    paused_reply = answer(await run(paused_agent, paused))
    agent, model = an_agent(says("Done"), says("Yes"))
    resumed = resume_turn(paused, paused_reply, decision)

    items = await run(agent, resumed)
    history = [record(paused, paused_reply), record(resumed, answer(items))]
    asking = Turn(request_id="r3", session_id="s1", prompt="Is it done?", history=history)
    await run(agent, asking)

    assert answer(items).text == "Done"
    assert events(items, EventType.TOOL_CALL_RESULT)[0].content == output
    assert resumed.state[STATE_KEY] == {}
    assert said(model.asked[-1]) == [
        ("human", "Pay back 7"),
        ("ai", ""),
        ("tool", output),
        ("ai", "Done"),
        ("human", "Is it done?"),
    ]


async def test_a_run_pauses_again_at_its_next_interrupt() -> None:
    agent, _ = an_agent(calls("refund", '{"order":"7"}'))
    first = a_turn("Pay back 7 and 8")
    first_reply = answer(await run(agent, first))
    agent, _ = an_agent(calls("refund", '{"order":"8"}', call_id="c2"))
    second = resume_turn(first, first_reply, {"status": "approved"})
    second_reply = answer(await run(agent, second))
    agent, model = an_agent(says("Both done"))
    third = Turn(
        request_id="r3",
        session_id="s1",
        prompt="",
        state=second.state,
        resume={
            "decisions": [
                {"id": each["id"], "status": "approved"}
                for each in second_reply.extra["interruptions"]
            ]
        },
    )

    reply = answer(await run(agent, third))

    assert (second_reply.status_code, second_reply.extra["run_id"]) == (202, "r2")
    assert reply.text == "Both done"
    assert [text for kind, text in said(model.asked[0]) if kind == "tool"] == [
        "refunded 7",
        "refunded 8",
    ]


async def test_an_interrupt_inside_a_subgraph_pauses_and_resumes() -> None:
    inner = chat_graph(ScriptedChat(script=[calls("refund", '{"order":"7"}')]))
    paused = a_turn("Pay back 7")
    reply = answer(await run(node_agent(inner), paused))
    inner = chat_graph(ScriptedChat(script=[says("Done")]))
    resumed = resume_turn(paused, reply, {"status": "approved"})

    items = await run(node_agent(inner), resumed)

    assert answer(items).text == "Done"
    assert events(items, EventType.TOOL_CALL_RESULT)[0].content == "refunded 7"


async def test_checkpoints_come_back_with_their_parents_and_pending_writes() -> None:
    builder = StateGraph(MessagesState)
    builder.add_node("speak", lambda _: {"messages": [AIMessage("one")]})
    builder.add_node("ask", lambda _: {"messages": [AIMessage(interrupt("which?"))]})
    builder.add_edge(START, "speak")
    builder.add_edge("speak", "ask")
    saver, copy = InMemorySaver(), InMemorySaver()
    config: RunnableConfig = {"configurable": {"thread_id": "turn"}}
    await builder.compile(checkpointer=saver).ainvoke({"messages": [HumanMessage("x")]}, config)

    _load(copy, _dump(saver))

    original, loaded = list(saver.list(None)), list(copy.list(None))
    assert len(original) > 1
    assert loaded == original


async def test_a_decision_on_nothing_is_refused() -> None:
    agent, _ = an_agent(calls("refund", '{"order":"7"}'))
    paused = a_turn()
    reply = answer(await run(agent, paused))
    turn = resume_turn(paused, reply, {"id": "other", "status": "approved"})

    with pytest.raises(FatalAgentError) as caught:
        await run(agent, turn)

    assert caught.value.status_code == 400


async def test_too_many_steps_end_the_turn() -> None:
    script = [calls("weather", '{"city":"Oslo"}', call_id=f"c{n}") for n in range(40)]
    agent = LangGraphAgent("helper", chat_graph(ScriptedChat(script=list(script))), max_steps=6)

    with pytest.raises(FatalAgentError, match="too many steps"):
        await run(agent)


class Answered(Exception):
    """An HTTP answer as clients of model providers raise it."""

    def __init__(self, status: int, **headers: str) -> None:
        super().__init__("secret")
        self.status_code = status
        self.response = type("Response", (), {"headers": headers})


async def test_a_rate_limit_of_any_provider_spends_no_attempt() -> None:
    agent, _ = an_agent(Answered(429, **{"retry-after": "7"}))

    with pytest.raises(RetryableAgentError) as caught:
        await run(agent)

    assert (caught.value.spends_attempt, caught.value.retry_after) == (False, 7.0)


async def test_a_refusal_of_any_provider_ends_the_turn_without_its_words() -> None:
    agent, _ = an_agent(Answered(401))

    with pytest.raises(FatalAgentError) as caught:
        await run(agent)

    assert "secret" not in caught.value.message


@pytest.mark.parametrize("error", [RetryableAgentError("later", retry_after=2.0), KeyError("x")])
async def test_a_nodes_own_error_comes_through(error: Exception) -> None:
    agent, _ = an_agent(error)

    with pytest.raises(type(error)) as caught:
        await run(agent)

    assert caught.value is error


class NoMessages(TypedDict):
    text: str


async def test_a_graph_without_messages_is_refused() -> None:
    builder = StateGraph(NoMessages)
    builder.add_node("node", lambda _: {"text": "x"})
    builder.add_edge(START, "node")

    with pytest.raises(AgentContractError, match="no 'messages'"):
        await run(LangGraphAgent("helper", builder.compile()))


async def test_history_is_given_with_ids_so_that_nothing_is_told_twice() -> None:
    async def echo_all(state: MessagesState) -> dict[str, list[BaseMessage]]:
        return {"messages": [*state["messages"], AIMessage("new")]}

    earlier = TurnRecord(request_id="r0", prompt="a", reply="b", agent="other", at=0.0)

    items = await run(node_agent(echo_all), a_turn("c", history=[earlier]))

    assert answer(items).text == "new"
    assert [item["langchain"]["data"]["content"] for item in answer(items).items] == ["c", "new"]


class WithNote(MessagesState):
    note: str


class OnlyNote(TypedDict):
    note: str


async def test_a_message_of_an_earlier_turn_that_a_node_touches_is_not_told_again() -> None:
    async def mend(state: OnlyNote) -> dict[str, list[BaseMessage]]:
        return {"messages": [AIMessage("b, mended", id="r0-reply")]}

    async def speak(state: WithNote) -> dict[str, list[BaseMessage]]:
        return {"messages": [AIMessage("new")]}

    builder = StateGraph(WithNote)
    builder.add_node("mend", mend)
    builder.add_node("speak", speak)
    builder.add_edge(START, "mend")
    builder.add_edge("mend", "speak")
    agent = LangGraphAgent("helper", builder.compile())
    earlier = TurnRecord(request_id="r0", prompt="a", reply="b", agent="other", at=0.0)

    items = await run(agent, a_turn("c", history=[earlier]))

    assert answer(items).text == "new"
    assert kinds(items) == ["message_start", "text_delta", "message_end", "reply"]


async def test_a_turn_that_is_stopped_stops_its_node() -> None:
    began, stopped = asyncio.Event(), asyncio.Event()

    async def hangs(state: MessagesState) -> dict[str, list[BaseMessage]]:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return {"messages": [HumanMessage("never")]}

    async with asyncio.TaskGroup() as group:
        task = group.create_task(run(node_agent(hangs)))
        await began.wait()
        task.cancel()

    assert stopped.is_set()


def test_a_module_registers_graphs_by_name() -> None:
    registry = AgentRegistry()
    graph = chat_graph(ScriptedChat())

    LangGraphModule(
        [LangGraphAgent("one", graph, description="First"), LangGraphAgent("two", graph)],
        registry=registry,
    )

    assert registry.names() == ("one", "two")
    assert registry.get().description == "First"
