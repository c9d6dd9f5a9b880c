"""Streamed pieces of a reply and their place in the stream.

A chunk's place is (attempt, index).  Within an attempt the index counts 0, 1, 2, ... without holes;
a new attempt starts again at 0 and voids what earlier attempts streamed.  The end of a stream is
not a chunk: it is the stored reply (or failure), so that `done` comes exactly once and last.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from turnline.protocol.chat import JsonObject


class EventType(StrEnum):
    """Kinds of streamed events; the guide's names."""

    MESSAGE_START = "message_start"
    TEXT_DELTA = "text_delta"
    MESSAGE_END = "message_end"
    TOOL_CALL_START = "tool_call_start"
    TOOL_CALL_ARGS = "tool_call_args"
    TOOL_CALL_END = "tool_call_end"
    TOOL_CALL_RESULT = "tool_call_result"
    STEP_START = "step_start"
    STEP_END = "step_end"
    REASONING_START = "reasoning_start"
    REASONING_DELTA = "reasoning_delta"
    REASONING_END = "reasoning_end"
    AUDIO_DELTA = "audio_delta"
    INTERRUPT = "interrupt"
    RUN_PAUSED = "run_paused"
    CUSTOM = "custom"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatEvent:
    """One event of a running turn; which fields are set depends on `type` (guide, SSE section).

    Attributes:
        content: text of a delta, or a tool's result.
        data: fields of an event that has none of its own here (`run_paused`, `custom`).
    """

    type: EventType
    message_id: str = ""
    role: str = ""
    content: str = ""
    tool_call_id: str = ""
    name: str = ""
    data: JsonObject = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Give the guide's JSON form: `type` and the fields that are set, flat."""
        body: dict[str, Any] = {"type": self.type.value}
        if self.message_id:
            body["message_id"] = self.message_id
        if self.tool_call_id:
            body["tool_call_id"] = self.tool_call_id
        if self.role:
            body["role"] = self.role
        if self.name:
            body["name"] = self.name
        if self.content:
            body["delta" if self.type is EventType.TOOL_CALL_ARGS else "content"] = self.content
        body.update(self.data)
        return body


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a stream: everything up to and including it has been seen.

    Ordered; `BEGINNING` comes before the first chunk of the first attempt.
    """

    attempt: int
    index: int

    def __str__(self) -> str:
        """Give the form used as SSE `id:` and `Last-Event-ID`: `<attempt>-<index>`."""
        return f"{self.attempt}-{self.index}"

    @classmethod
    def parse(cls, text: str) -> "Position":
        """Read `<attempt>-<index>`.

        Raises:
            ValueError: the text is no position.
        """
        attempt, dash, index = text.strip().partition("-")
        if not (dash and attempt.isascii() and attempt.isdigit()):
            raise ValueError(f"no stream position: {text[:40]!r}")
        if index != "-1" and not (index.isascii() and index.isdigit()):
            raise ValueError(f"no stream position: {text[:40]!r}")
        if len(attempt) > 10 or len(index) > 10:
            raise ValueError("stream position out of range")
        return cls(int(attempt), int(index))


BEGINNING = Position(0, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One streamed piece.

    Attributes:
        attempt: the turn's attempt that made it, 1 or more.
        index: its number within the attempt, from 0.
        event: what happened; `event.content` is the text of a `text_delta`.
    """

    attempt: int
    index: int
    event: ChatEvent

    @property
    def position(self) -> Position:
        """The place of this chunk in its stream."""
        return Position(self.attempt, self.index)

    @property
    def delta(self) -> str:
        """Reply text this chunk adds; empty for events that add none."""
        return self.event.content if self.event.type is EventType.TEXT_DELTA else ""
