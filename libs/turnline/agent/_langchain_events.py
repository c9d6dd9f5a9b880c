"""From LangChain messages and message chunks to our events.

A node may stream a message in chunks or return it whole; each text, call and result goes out once
either way.  Messages of nodes that run at the same time are told apart by their ids.
"""

from collections.abc import Collection, Iterator

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.messages.tool import ToolCall, ToolCallChunk
from pydantic import TypeAdapter

from turnline.agent.answers import (
    ReasoningStream,
    TextStream,
    call_arguments,
    new_message_id,
    storable_text,
)
from turnline.protocol import ChatEvent, EventType

_OBJECT: TypeAdapter[object] = TypeAdapter(object)


class MessageMapper:
    """Maps the messages of one run; feed `map` in order, then call `finish` or `close`.

    Args:
        known: ids of messages that were there before this turn.
    """

    def __init__(self, known: Collection[str]) -> None:
        self._known = known
        self._text = TextStream()
        self._current = ""
        self._reasoning = ReasoningStream()
        self._open_calls: dict[tuple[str, int | str | None], str] = {}
        self._results: set[str] = set()

    @property
    def text(self) -> str:
        """All text so far."""
        return self._text.text

    def map(self, message: BaseMessage) -> Iterator[ChatEvent]:
        """Give what a message, or a chunk of one, means for a reader."""
        if message.id in self._known:
            return
        if isinstance(message, ToolMessage):
            yield from self._result(message)
        elif isinstance(message, AIMessage):
            yield from self._said(message)

    def finish(self, last: BaseMessage | None) -> Iterator[ChatEvent]:
        """End the run; an answer that no message showed goes out now."""
        if isinstance(last, AIMessage) and last.id not in self._known:
            text = storable_text(str(last.text))
            if not self.text.endswith(text):
                yield from self._text.close()
                yield from self._text.add(text)
        yield from self.close()

    def close(self) -> Iterator[ChatEvent]:
        """End what is open."""
        yield from self._reasoning.close()
        yield from self._text.close()
        for call_id in self._open_calls.values():
            yield ChatEvent(type=EventType.TOOL_CALL_END, tool_call_id=call_id)
        self._open_calls.clear()

    def _said(self, message: AIMessage) -> Iterator[ChatEvent]:
        if message.id != self._current:
            self._current = message.id or ""
            yield from self.close()
        for block in message.content_blocks:
            if block["type"] == "reasoning":
                yield from self._reasoning.add(block.get("reasoning", ""))
        if text := str(message.text):
            yield from self._reasoning.close()
            yield from self._text.add(text)
        if isinstance(message, AIMessageChunk):
            for piece in message.tool_call_chunks:
                yield from self._call_piece(piece)
            if message.chunk_position == "last":
                yield from self.close()
        else:
            for call in message.tool_calls:
                yield from self._whole_call(call)
            yield from self.close()

    def _call_piece(self, piece: ToolCallChunk) -> Iterator[ChatEvent]:
        index = piece.get("index")
        place = (self._current, piece["id"] if index is None else index)
        if piece["id"] and place not in self._open_calls:
            yield from self._text.close()
            self._open_calls[place] = piece["id"]
            yield ChatEvent(
                type=EventType.TOOL_CALL_START, tool_call_id=piece["id"], name=piece["name"] or ""
            )
        if piece["args"] and (call_id := self._open_calls.get(place)):
            yield call_arguments(call_id, piece["args"])

    def _whole_call(self, call: ToolCall) -> Iterator[ChatEvent]:
        call_id = call["id"] or new_message_id()
        yield from self._text.close()
        yield ChatEvent(type=EventType.TOOL_CALL_START, tool_call_id=call_id, name=call["name"])
        yield call_arguments(call_id, _OBJECT.dump_json(call["args"], fallback=str).decode())
        self._open_calls[self._current, call_id] = call_id

    def _result(self, message: ToolMessage) -> Iterator[ChatEvent]:
        yield from self.close()
        if message.tool_call_id in self._results:
            return
        self._results.add(message.tool_call_id)
        yield ChatEvent(
            type=EventType.TOOL_CALL_RESULT,
            tool_call_id=message.tool_call_id,
            content=storable_text(str(message.text)),
        )
