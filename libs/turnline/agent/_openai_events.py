"""From the SDK's stream events to ours.

A model may stream its pieces or give them only when whole; each text, call and result goes out
once either way.
"""

from collections.abc import Iterator
from typing import Any

import agents as sdk
from agents.items import (
    HandoffCallItem,
    HandoffOutputItem,
    MessageOutputItem,
    RunItem,
    ToolCallItem,
    ToolCallOutputItem,
    TResponseStreamEvent,
)
from openai.types.responses import (
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseFunctionToolCall,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseReasoningItem,
    ResponseReasoningSummaryTextDeltaEvent,
    ResponseReasoningTextDeltaEvent,
    ResponseRefusalDeltaEvent,
    ResponseTextDeltaEvent,
)
from pydantic import TypeAdapter

from turnline.agent.answers import ReasoningStream, TextStream, call_arguments, storable_text
from turnline.protocol import ChatEvent, EventType

_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)


class EventMapper:
    """Maps the events of one run; feed `map` in order, then call `finish` or `close`.

    Args:
        agent: name of the SDK agent the run starts at; others get a step of their own.
    """

    def __init__(self, agent: str) -> None:
        self._first_agent = agent
        self._step = ""
        self._text = TextStream()
        self._unconfirmed = 0  # characters streamed and not yet seen in a whole message
        self._reasoning = ReasoningStream()
        self._calls: dict[str, str] = {}  # provider's item id -> call id
        self._ended_calls: set[str] = set()

    @property
    def text(self) -> str:
        """All text so far."""
        return self._text.text

    def map(self, event: sdk.StreamEvent) -> Iterator[ChatEvent]:
        """Give what one SDK event means for a reader."""
        match event:
            case sdk.RawResponsesStreamEvent(data=data):
                yield from self._raw(data)
            case sdk.RunItemStreamEvent(item=item):
                yield from self._item(item)
            case sdk.AgentUpdatedStreamEvent(new_agent=agent):
                yield from self._agent(agent.name)

    def finish(self, final_output: object) -> Iterator[ChatEvent]:
        """End the run; text that no message showed (a tool's output as answer) goes out now."""
        if isinstance(final_output, str):
            if not self.text.endswith(storable_text(final_output)):
                yield from self._text.close()
                yield from self._text.add(final_output)
        elif not self.text and final_output is not None:
            yield from self._text.add(_as_json(final_output))
        yield from self.close()

    def close(self) -> Iterator[ChatEvent]:
        """End what is open."""
        yield from self._reasoning.close()
        yield from self._text.close()
        if self._step:
            yield ChatEvent(type=EventType.STEP_END, name=self._step)
            self._step = ""

    def _raw(self, data: TResponseStreamEvent) -> Iterator[ChatEvent]:
        match data:
            case ResponseTextDeltaEvent() | ResponseRefusalDeltaEvent():
                yield from self._reasoning.close()
                self._unconfirmed += len(data.delta)
                yield from self._text.add(data.delta)
            case ResponseReasoningSummaryTextDeltaEvent() | ResponseReasoningTextDeltaEvent():
                yield from self._reasoning.add(data.delta)
            case ResponseOutputItemAddedEvent(item=ResponseFunctionToolCall() as call):
                yield from self._start_call(call.call_id, call.name, call.id)
            case ResponseFunctionCallArgumentsDeltaEvent():
                if data.delta and (call_id := self._calls.get(data.item_id)):
                    yield call_arguments(call_id, data.delta)
            case ResponseOutputItemDoneEvent(item=ResponseFunctionToolCall() as call):
                yield from self._end_call(call.call_id, call.name, call.arguments)
            case ResponseOutputItemDoneEvent(item=ResponseOutputMessage()):
                yield from self._text.close()
            case ResponseOutputItemDoneEvent(item=ResponseReasoningItem()):
                yield from self._reasoning.close()
            case _:
                pass

    def _item(self, item: RunItem) -> Iterator[ChatEvent]:
        match item:
            case MessageOutputItem():
                streamed, self._unconfirmed = self._unconfirmed, 0
                if not streamed:
                    yield from self._text.add(sdk.ItemHelpers.text_message_output(item))
                yield from self._text.close()
            case ToolCallItem() | HandoffCallItem():
                call_id = _field(item.raw_item, "call_id") or _field(item.raw_item, "id")
                tool = _field(item.raw_item, "name") or _field(item.raw_item, "type")
                yield from self._end_call(call_id, tool, _field(item.raw_item, "arguments"))
            case ToolCallOutputItem() | HandoffOutputItem():
                yield ChatEvent(
                    type=EventType.TOOL_CALL_RESULT,
                    tool_call_id=_field(item.raw_item, "call_id"),
                    content=storable_text(_field(item.raw_item, "output")),
                )
            case _:
                pass

    def _start_call(self, call_id: str, tool: str, item_id: str | None) -> Iterator[ChatEvent]:
        yield from self._reasoning.close()
        yield from self._text.close()
        self._calls[item_id or call_id] = call_id
        yield ChatEvent(type=EventType.TOOL_CALL_START, tool_call_id=call_id, name=tool)

    def _end_call(self, call_id: str, tool: str, arguments: str) -> Iterator[ChatEvent]:
        """End a call, first starting it when the model gave it whole."""
        if call_id in self._ended_calls:
            return
        if call_id not in self._calls.values():
            yield from self._start_call(call_id, tool, None)
            if arguments:
                yield call_arguments(call_id, arguments)
        self._ended_calls.add(call_id)
        yield ChatEvent(type=EventType.TOOL_CALL_END, tool_call_id=call_id)

    def _agent(self, name: str) -> Iterator[ChatEvent]:
        yield from self._text.close()
        if self._step:
            yield ChatEvent(type=EventType.STEP_END, name=self._step)
        self._step = "" if name == self._first_agent else name
        if self._step:
            yield ChatEvent(type=EventType.STEP_START, name=self._step)


def _field(raw: object, name: str) -> str:
    """Give a field of one of the SDK's raw items, which are objects or dicts, as text."""
    value = raw.get(name) if isinstance(raw, dict) else getattr(raw, name, None)
    if value is None or isinstance(value, str):
        return value or ""
    return _as_json(value)


def _as_json(value: object) -> str:
    return _ANYTHING.dump_json(value, fallback=str).decode()
