"""Graphs of LangGraph (`pip install 'turnline[langgraph]'`).

    from turnline.agent.langgraph import LangGraphAgent, LangGraphModule

    LangGraphModule([LangGraphAgent("helper", builder.compile())])

A graph's state must have `messages`; they are what a session remembers, and they live in
Turnline's history, not in a checkpointer: each turn's new messages are committed with its reply, so
a repeated attempt never leaves half a turn behind.  A graph that interrupts pauses its run; the
checkpoint then lies in the session's state until a later turn decides.
"""

import base64
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from turnline.agent.answers import AgentContractError, checked_reply
from turnline.agent.inputs import Part, PartKind, parts_of
from turnline.agent.pauses import Resumption, pause, paused_reply, resumption
from turnline.agent.port import AgentError, FatalAgentError, Reply, Turn
from turnline.agent.provider_errors import of_status
from turnline.agent.registry import AgentRegistry, default_registry
from turnline.protocol import ChatEvent, JsonObject, TurnRecord

try:
    from langchain_core.messages import (
        AIMessage,
        BaseMessage,
        HumanMessage,
        message_to_dict,
        messages_from_dict,
    )
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.errors import GraphRecursionError, InvalidUpdateError
    from langgraph.pregel import Pregel
    from langgraph.types import Command, Interrupt
    from pydantic import TypeAdapter

    from turnline.agent._langchain_events import MessageMapper
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "turnline.agent.langgraph needs LangGraph: pip install 'turnline[langgraph]'",
        name=error.name,
    ) from error

ITEM_KEY = "langchain"
MAX_STEPS = 50
_OBJECT: TypeAdapter[object] = TypeAdapter(object)
_THREAD: RunnableConfig = {"configurable": {"thread_id": "turn", "checkpoint_ns": ""}}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One start or resumption of a graph.

    Attributes:
        known: ids of the messages that were there before the turn.
        kept: what history keeps of what the user said; None when the turn resumes a run.
    """

    graph: Pregel[Any, Any, Any, Any]
    saver: InMemorySaver
    input: Any
    known: frozenset[str]
    kept: HumanMessage | None


class LangGraphAgent:
    """A compiled graph as an agent.

    Every model call that streams is shown to the caller; LangGraph's tag `nostream` on a model
    keeps its words back.  A checkpointer the graph was compiled with is not used.

    Args:
        graph: as `StateGraph.compile()` gives it.
        description: one sentence for people.
        max_steps: the graph's `recursion_limit`.
        config: merged into each run's RunnableConfig (callbacks, tags, `configurable` keys).
        context: makes the graph's runtime context; None gives it none.
    """

    def __init__(
        self,
        name: str,
        graph: Pregel[Any, Any, Any, Any],
        *,
        description: str = "",
        max_steps: int = MAX_STEPS,
        config: RunnableConfig | None = None,
        context: Callable[[Turn], Any] | None = None,
    ) -> None:
        self._name = name
        self._graph = graph
        self._description = description
        self._context = context
        given = config or {}
        self._config: RunnableConfig = {
            "recursion_limit": max_steps,
            **given,
            "configurable": {**given.get("configurable", {}), **_THREAD["configurable"]},
        }

    @property
    def name(self) -> str:
        """See `Agent`."""
        return self._name

    @property
    def description(self) -> str:
        """See `Agent`."""
        return self._description

    async def run(self, turn: Turn) -> AsyncIterator[ChatEvent | Reply]:
        """Answer a turn; see `Agent`.

        Raises:
            RetryableAgentError: the model's provider is over its rate, away or slow.
            FatalAgentError: the provider refused, or the turn took too many steps.
        """
        resumed = resumption(turn, agent=self._name)
        run = self._resumed(resumed) if resumed else self._started(turn)
        mapper = MessageMapper(run.known)
        state: Mapping[str, Any] = {}
        try:
            async with aclosing(self._stream(run, turn)) as pieces:
                async for piece in pieces:
                    if not isinstance(piece, BaseMessage):
                        state = piece
                        continue
                    for event in mapper.map(piece):
                        yield event
        except Exception as error:
            if (known := _translated(self._name, error)) is None:
                raise
            raise known from error
        for ending in self._ending(turn, run, state, mapper):
            yield ending

    def _started(self, turn: Turn) -> _Run:
        history = list(_history(turn.history))
        parts, message_id = parts_of(turn), f"{turn.request_id}-prompt"
        said = _human(parts, message_id)
        saver = InMemorySaver()
        return _Run(
            graph=self._graph.copy({"checkpointer": saver}),
            saver=saver,
            input={"messages": [*history, said]},
            known=frozenset(message.id for message in [*history, said] if message.id),
            kept=_human([part.lasting() for part in parts], message_id),
        )

    def _resumed(self, resumed: Resumption) -> _Run:
        saver = InMemorySaver()
        _load(saver, resumed.saved["checkpoint"])
        answers = {
            interrupt_id: _decided(decision)
            for interrupt_id, decision in resumed.decisions.items()
            if interrupt_id in resumed.saved["interrupts"]
        }
        if not answers:
            raise FatalAgentError("No decision fits an interruption of this run", status_code=400)
        return _Run(
            graph=self._graph.copy({"checkpointer": saver}),
            saver=saver,
            input=Command(resume=answers),
            known=frozenset(resumed.saved["known"]),
            kept=None,
        )

    async def _stream(
        self, run: _Run, turn: Turn
    ) -> AsyncGenerator[BaseMessage | Mapping[str, Any], None]:
        """Give messages, from subgraphs too, and the root graph's states."""
        parts = run.graph.astream(
            run.input,
            self._config,
            context=self._context(turn) if self._context else None,
            stream_mode=["messages", "values"],
            subgraphs=True,
            durability="exit",
        )
        async with aclosing(_as_generator(parts)) as stream:
            async for namespace, mode, data in stream:
                if mode == "messages":
                    yield data[0]
                elif not namespace and isinstance(data, Mapping):
                    yield data

    def _ending(
        self, turn: Turn, run: _Run, state: Mapping[str, Any], mapper: MessageMapper
    ) -> Iterator[ChatEvent | Reply]:
        """What comes after the graph's last message: closing events and the Reply."""
        said = [run.kept] if run.kept else []
        interrupts: Sequence[Interrupt] = state.get("__interrupt__", ())
        if interrupts:
            yield from mapper.close()
            paused = self._pause(turn, run, interrupts)
            yield paused
            reply = paused_reply(paused, text=mapper.text, items=_kept(said))
            yield checked_reply(self._name, reply)
            return
        messages = state.get("messages")
        if not isinstance(messages, list):
            raise AgentContractError(self._name, "has a graph whose state has no 'messages' list")
        made = [message for message in messages if message.id not in run.known]
        yield from mapper.finish(made[-1] if made else None)
        yield checked_reply(self._name, Reply(text=mapper.text, items=_kept([*said, *made])))

    def _pause(self, turn: Turn, run: _Run, interrupts: Sequence[Interrupt]) -> ChatEvent:
        return pause(
            turn,
            agent=self._name,
            saved={
                "checkpoint": _dump(run.saver),
                "interrupts": [interrupt.id for interrupt in interrupts],
                "known": sorted(run.known),
            },
            interruptions=[
                {"id": each.id, "type": "interrupt", "value": _json(each.value)}
                for each in interrupts
            ],
        )


class LangGraphModule:
    """Registers graphs: `LangGraphModule([LangGraphAgent("name", graph), ...])`.

    Args:
        registry: None means `default_registry`, which the runner serves.

    Raises:
        ConfigurationError: a name is taken.
    """

    def __init__(
        self, agents: Sequence[LangGraphAgent], *, registry: AgentRegistry | None = None
    ) -> None:
        self.agents = tuple(agents)
        for agent in self.agents:
            (default_registry if registry is None else registry).register(agent)


async def _as_generator(parts: AsyncIterator[Any]) -> AsyncGenerator[Any, None]:
    async for part in parts:
        yield part


def _translated(agent: str, error: Exception) -> AgentError | None:
    """Give the agent error for one that a graph or its model raised; None when it says enough."""
    if isinstance(error, AgentError):
        return None
    if isinstance(error, GraphRecursionError):
        return FatalAgentError("The agent took too many steps")
    if isinstance(error, InvalidUpdateError):
        return AgentContractError(agent, f"has a graph that updates its state wrongly: {error}")
    # Clients of model providers share this shape: a status and the answer it came with.
    status = getattr(error, "status_code", None)
    headers = getattr(getattr(error, "response", None), "headers", None)
    if isinstance(status, int) and status >= 400 and isinstance(headers, Mapping):
        code = getattr(error, "code", None)
        return of_status(status, code=code if isinstance(code, str) else None, headers=headers)
    return None


def _history(history: Sequence[TurnRecord]) -> Iterator[BaseMessage]:
    """Give past turns as messages; turns of other frameworks by their two texts."""
    for record in history:
        kept: list[Any] = [item[ITEM_KEY] for item in record.items if ITEM_KEY in item]
        if kept:
            yield from messages_from_dict(kept)
            continue
        if record.prompt:
            yield HumanMessage(record.prompt, id=f"{record.request_id}-prompt")
        if record.reply:
            yield AIMessage(record.reply, id=f"{record.request_id}-reply")


def _human(parts: Sequence[Part], message_id: str) -> HumanMessage:
    if all(part.kind is PartKind.TEXT for part in parts):
        return HumanMessage("\n\n".join(part.text for part in parts), id=message_id)
    return HumanMessage(content=[_block(part) for part in parts], id=message_id)


def _block(part: Part) -> dict[str, Any]:
    if part.kind is PartKind.TEXT:
        return {"type": "text", "text": part.text}
    mime_type, base64_mark, data = part.url.removeprefix("data:").partition(";base64,")
    if not (part.inline and base64_mark):
        return {"type": part.kind.value, "url": part.url}
    block = {"type": part.kind.value, "base64": data, "mime_type": mime_type}
    return {**block, "filename": part.name} if part.name else block


def _kept(messages: Sequence[BaseMessage]) -> list[JsonObject]:
    return [{ITEM_KEY: _json(message_to_dict(message))} for message in messages]


def _decided(decision: JsonObject) -> object:
    """Give what `interrupt()` returns in the graph: the payload, or else status and message."""
    if "payload" in decision:
        return decision["payload"]
    return {key: value for key, value in decision.items() if key != "id"}


def _dump(saver: InMemorySaver) -> list[str]:
    """Give a saver's checkpoints as JSON: the name of their encoding, and them in base64."""
    kind, data = saver.serde.dumps_typed([tuple(each) for each in saver.list(None)])
    return [kind, base64.b64encode(data).decode()]


def _load(saver: InMemorySaver, dumped: Sequence[str]) -> None:
    kind, data = dumped
    tuples = saver.serde.loads_typed((kind, base64.b64decode(data)))
    for config, checkpoint, metadata, parent, writes in tuples:
        place = {key: config["configurable"][key] for key in ("thread_id", "checkpoint_ns")}
        if parent is not None:
            place["checkpoint_id"] = parent["configurable"]["checkpoint_id"]
        versions = checkpoint["channel_versions"]
        saver.put({"configurable": place}, checkpoint, metadata, versions)
        for task_id, group in groupby(writes or (), key=itemgetter(0)):
            saver.put_writes(config, [(channel, value) for _, channel, value in group], task_id)


def _json(value: object) -> object:
    return _OBJECT.dump_python(value, mode="json", fallback=str)
