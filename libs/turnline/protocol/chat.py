"""What a caller asks and what an agent answers, free of transport and wire format.

Field names are the guide's JSON names ("POST /api/v1/chat" and its replies); the Protobuf messages
in `proto/turnline/v1/chat.proto` mirror them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file or image sent with a prompt.

    Attributes:
        data: base64 text, a `data:` URL, or an http(s)/s3 URL.
        name: file name for people; may be empty.
        mime_type: empty only when `data` is a URL or says its type itself.
    """

    data: str
    name: str = ""
    mime_type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One user message.

    Attributes:
        prompt: the message; empty only when `resume` or `requests` is given.
        agent: name of the agent; empty means the first one registered.
        user_id: who speaks, as the caller says; the authenticated user, if any, replaces it.
        files / images: attachments in the order sent.
        resume: the guide's resume block (`run_id`, `decisions`), or None.
        requests: the guide's prebuilt typed inputs, in order.
        schedule: the guide's schedule block (`at` or `cron`, `timezone`, `session_mode`), or None.
        scheduled_task_id / scheduled_time: set on an occurrence of a schedule.
        extra: keys of the body that are none of the above; the agent sees them.
    """

    prompt: str = ""
    agent: str = ""
    user_id: str = ""
    group_id: str = ""
    thread_name: str = ""
    files: Sequence[Attachment] = ()
    images: Sequence[Attachment] = ()
    resume: JsonObject | None = None
    requests: Sequence[JsonObject] = ()
    schedule: JsonObject | None = None
    scheduled_task_id: str = ""
    scheduled_time: str = ""
    extra: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """What an agent answered.

    Attributes:
        result: the whole text; with a streamed turn, all text deltas of the final attempt joined.
        extra: further top-level keys of the reply body (the guide's paused runs use `status`,
            `run_id`, `interruptions`).
    """

    result: str = ""
    extra: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """One finished turn in a session's history.

    Attributes:
        request_id: names the turn; a history holds each id once.
        prompt / reply: the two texts.
        agent: name of the agent that answered.
        at: commit time, seconds since the epoch.
        items: what the agent's framework wants to remember of this turn (tool calls and their
            results included), as JSON objects in the framework's own form; empty for agents
            that need only the texts.
    """

    request_id: str
    prompt: str
    reply: str
    agent: str
    at: float
    items: Sequence[JsonObject] = ()
