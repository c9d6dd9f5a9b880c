"""Agents of the OpenAI Agents SDK (`pip install 'turnline[openai]'`).

    from agents import Agent
    from turnline.agent.openai import OpenAIModule

    OpenAIModule([Agent(name="helper", instructions="Be brief.")])

The conversation lives in Turnline's history, not in an SDK session: each turn's new items, tool
calls and their results among them, are committed with its reply, so a repeated attempt never
leaves half a turn behind.  The SDK's own tracing, which would call out, is off unless a RunConfig
says otherwise.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from turnline.agent.answers import checked_reply
from turnline.agent.inputs import Part, PartKind, parts_of
from turnline.agent.pauses import Resumption, pause, paused_reply, resumption
from turnline.agent.port import FatalAgentError, Reply, Turn
from turnline.agent.registry import AgentRegistry, default_registry
from turnline.protocol import ChatEvent, JsonObject, TurnRecord

try:
    import agents as sdk
    from agents.items import ToolApprovalItem, TResponseInputItem
    from agents.result import RunResultStreaming
    from agents.run_state import RunState
    from pydantic import TypeAdapter

    from turnline.agent._openai_errors import VENDOR_ERRORS, translated
    from turnline.agent._openai_events import EventMapper
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "turnline.agent.openai needs the OpenAI Agents SDK: pip install 'turnline[openai]'",
        name=error.name,
    ) from error

ITEM_KEY = "openai"
MAX_STEPS = 10
STOP_SECONDS = 2.0
_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)


class OpenAIAgent:
    """One SDK agent as a Turnline agent, under the SDK agent's name.

    Each turn starts at this agent; one that takes over by handoff answers that turn only.

    Args:
        agent: the SDK agent.
        run_config: None runs with the SDK's defaults and without its tracing.
        max_steps: model calls a turn may make.
        context: makes what tools find as `RunContextWrapper.context`; None gives them the Turn.
    """

    def __init__(
        self,
        agent: sdk.Agent[Any],
        *,
        run_config: sdk.RunConfig | None = None,
        max_steps: int = MAX_STEPS,
        context: Callable[[Turn], Any] | None = None,
    ) -> None:
        self._agent = agent
        self._run_config = run_config or sdk.RunConfig(tracing_disabled=True)
        self._max_steps = max_steps
        self._context = context or (lambda turn: turn)

    @property
    def name(self) -> str:
        """The SDK agent's name."""
        return self._agent.name

    @property
    def description(self) -> str:
        """The SDK agent's `handoff_description`; empty when it has none."""
        return self._agent.handoff_description or ""

    async def run(self, turn: Turn) -> AsyncIterator[ChatEvent | Reply]:
        """Answer a turn; see `Agent`.

        Raises:
            RetryableAgentError: the provider is over its rate, away or slow.
            FatalAgentError: the provider or a guardrail refused, or the turn took too many steps.
        """
        resumed = resumption(turn, agent=self.name)
        parts = () if resumed else parts_of(turn)
        mapper = EventMapper(self.name)
        try:
            state = await self._resumed(turn, resumed) if resumed else None
            result = self._start(turn, parts, state)
            async with aclosing(_events(result, mapper)) as events:
                async for event in events:
                    yield event
            for ending in self._ending(turn, parts, result, mapper):
                yield ending
        except VENDOR_ERRORS as error:
            raise translated(self.name, error) from error

    def _start(
        self, turn: Turn, parts: Sequence[Part], state: RunState[Any] | None
    ) -> RunResultStreaming:
        said = [*_history_items(turn.history), *_user_items(parts)]
        return sdk.Runner.run_streamed(
            self._agent,
            said if state is None else state,
            context=self._context(turn) if state is None else None,
            max_turns=self._max_steps,
            run_config=self._run_config,
        )

    async def _resumed(self, turn: Turn, resumed: Resumption) -> RunState[Any]:
        state: RunState[Any] = await RunState.from_json(
            self._agent, resumed.saved, context_deserializer=lambda _: self._context(turn)
        )
        for item in state.get_interruptions():
            decision = resumed.decisions.get(item.call_id or "")
            if decision is not None:
                _decide(state, item, decision)
        return state

    def _ending(
        self,
        turn: Turn,
        parts: Sequence[Part],
        result: RunResultStreaming,
        mapper: EventMapper,
    ) -> Iterator[ChatEvent | Reply]:
        """What comes after the SDK's last event: closing events and the Reply."""
        said = _user_items([part.lasting() for part in parts])
        if result.interruptions:
            yield from mapper.close()
            paused = self._pause(turn, result)
            yield paused
            yield checked_reply(
                self.name, paused_reply(paused, text=mapper.text, items=_kept(said))
            )
            return
        yield from mapper.finish(result.final_output)
        made = result.to_input_list()[len(result.input) :]
        yield checked_reply(self.name, Reply(text=mapper.text, items=_kept([*said, *made])))

    def _pause(self, turn: Turn, result: RunResultStreaming) -> ChatEvent:
        state = result.to_state().to_json(context_serializer=lambda _: {})
        interruptions = [
            {
                "id": item.call_id or "",
                "type": "tool_approval",
                "tool_name": item.name or "",
                "arguments": item.arguments or "",
            }
            for item in result.interruptions
        ]
        return pause(
            turn,
            agent=self.name,
            saved=_json(state),
            interruptions=interruptions,
        )


class OpenAIModule:
    """The guide's way to register SDK agents: `OpenAIModule([agent, ...])`.

    The first agent of a process answers requests that name none.

    Args:
        agents: SDK agents, or OpenAIAgents for those that need options.
        registry: None means `default_registry`, which the runner serves.

    Raises:
        ConfigurationError: a name is taken.
    """

    def __init__(
        self,
        agents: Sequence[sdk.Agent[Any] | OpenAIAgent],
        *,
        registry: AgentRegistry | None = None,
    ) -> None:
        self.agents = tuple(
            agent if isinstance(agent, OpenAIAgent) else OpenAIAgent(agent) for agent in agents
        )
        for agent in self.agents:
            (default_registry if registry is None else registry).register(agent)


async def _events(
    result: RunResultStreaming, mapper: EventMapper
) -> AsyncGenerator[ChatEvent, None]:
    """Map the SDK's events; leaving early stops the SDK's tasks and waits for them shortly."""
    try:
        async with aclosing(_as_generator(result.stream_events())) as events:
            try:
                async for event in events:
                    for mapped in mapper.map(event):
                        yield mapped
            except BaseException:
                result.cancel()
                raise
    finally:
        task = result.run_loop_task
        if task is not None and not task.done():
            await asyncio.wait([task], timeout=STOP_SECONDS)


async def _as_generator(
    events: AsyncIterator[sdk.StreamEvent],
) -> AsyncGenerator[sdk.StreamEvent, None]:
    async for event in events:
        yield event


def _history_items(history: Sequence[TurnRecord]) -> Iterator[TResponseInputItem]:
    """Give past turns as SDK input; turns of other frameworks by their two texts."""
    for record in history:
        kept: list[Any] = [item[ITEM_KEY] for item in record.items if ITEM_KEY in item]
        if kept:
            yield from kept
            continue
        if record.prompt:
            yield {"role": "user", "content": record.prompt}
        if record.reply:
            yield {"role": "assistant", "content": record.reply}


def _user_items(parts: Sequence[Part]) -> list[TResponseInputItem]:
    if not parts:
        return []
    if all(part.kind is PartKind.TEXT for part in parts):
        return [{"role": "user", "content": "\n\n".join(part.text for part in parts)}]
    content: Any = [_content(part) for part in parts]
    return [{"role": "user", "content": content}]


def _content(part: Part) -> JsonObject:
    match part.kind:
        case PartKind.TEXT:
            return {"type": "input_text", "text": part.text}
        case PartKind.IMAGE:
            return {"type": "input_image", "image_url": part.url, "detail": "auto"}
        case PartKind.FILE if part.inline:
            return {
                "type": "input_file",
                "file_data": part.url,
                "filename": part.name or "unnamed",
            }
        case PartKind.FILE:
            return {"type": "input_file", "file_url": part.url}


def _kept(items: Sequence[TResponseInputItem]) -> list[JsonObject]:
    return [{ITEM_KEY: _json(item)} for item in items]


def _decide(state: RunState[Any], item: ToolApprovalItem, decision: JsonObject) -> None:
    match decision.get("status"):
        case "approved":
            state.approve(item)
        case "denied" | "cancelled":
            message = decision.get("message")
            state.reject(item, rejection_message=message if isinstance(message, str) else None)
        case _:
            raise FatalAgentError(
                "a decision's status is approved, denied or cancelled", status_code=400
            )


def _json(value: object) -> object:
    return _ANYTHING.dump_python(value, mode="json")
