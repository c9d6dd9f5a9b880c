"""What callers give and get: plain values, free of Protobuf."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

JsonObject: TypeAlias = Mapping[str, Any]
"""A JSON object; its numbers travel as doubles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file or image.

    Attributes:
        data: base64 text, a `data:` URL, or an http(s) or s3 URL; never empty.
        name: file name for people.
        mime_type: media type; may be empty only when `data` is a URL.
    """

    data: str
    name: str = ""
    mime_type: str = ""


class Verdict(StrEnum):
    """What was decided about an interruption of a paused run."""

    APPROVED = "approved"
    DENIED = "denied"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A person's answer to one interruption.

    Attributes:
        id: of the interruption, as the paused run gave it.
        verdict: None leaves it to `message` and `payload`.
        message: words for the agent.
        payload: any JSON value for the agent; None gives none.
    """

    id: str
    verdict: Verdict | None = None
    message: str = ""
    payload: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Continues a paused run.

    Attributes:
        run_id: empty means the session's paused run.
    """

    decisions: Sequence[Decision]
    run_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One user message.

    Attributes:
        prompt: the message; empty only with `resume` or `requests`.
        agent: name of the agent; empty means the server's first one.
        user_id: who speaks; a server that checks tokens puts the token's user here.
        group_id: the caller's own grouping.
        thread_name: title of the conversation for people.
        resume: decisions about a paused run.
        requests: prebuilt typed inputs, each with a `type`.
        extra: further keys for the agent.
    """

    prompt: str = ""
    agent: str = ""
    user_id: str = ""
    group_id: str = ""
    thread_name: str = ""
    files: Sequence[Attachment] = ()
    images: Sequence[Attachment] = ()
    resume: Resume | None = None
    requests: Sequence[JsonObject] = ()
    extra: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A turn that is on its way.

    Attributes:
        known: whether its `request_id` was used before with the same request.
    """

    request_id: str
    session_id: str
    known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The end of a turn that was answered; of a stream, its last item.

    Attributes:
        text: the whole answer.
        status_code: HTTP status of the outcome.
        extra: further keys of the reply (`status`, `run_id`, `interruptions` of a paused run).
        attempt: which attempt answered, from 1.
    """

    request_id: str
    session_id: str
    text: str
    status_code: int
    extra: JsonObject
    attempt: int


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place in a stream: everything up to and including it was seen.

    Attributes:
        attempt: of the last chunk seen; 0 when none was.
        index: of the last chunk seen; -1 when none of this attempt was.
    """

    attempt: int = 0
    index: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened; which fields are set depends on `type`.

    Attributes:
        type: `text_delta`, `tool_call_start`, `step_end`, ...; names of types that are newer than
            this client are given as the server wrote them.
        content: text of a delta, part of a call's arguments, or a tool's result.
        data: fields of an event that has none of its own here.
    """

    type: str
    message_id: str = ""
    role: str = ""
    content: str = ""
    tool_call_id: str = ""
    name: str = ""
    data: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """One streamed piece, and its place."""

    position: Position
    event: Event

    @property
    def text(self) -> str:
        """What it adds to the answer; empty unless it is a `text_delta`."""
        return self.event.content if self.event.type == "text_delta" else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Every chunk seen so far is void: another attempt, `attempt`, begins."""

    attempt: int


StreamItem: TypeAlias = Admitted | Chunk | Restart | Reply
"""What a stream gives: `Admitted` first, once; `Reply` last, once."""


class TurnState(StrEnum):
    """What a turn was doing when it was cancelled.

    QUEUED: it had not begun and never will.  RUNNING: its runner was told.  DONE: it had ended.
    """

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
