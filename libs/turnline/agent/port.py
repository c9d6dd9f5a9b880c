"""What an agent is: a name, and a way from a turn to streamed events and one reply.

Users write agents with `@agent` (`turnline.agent.functions`); adapters for frameworks implement
this port directly.  An agent knows nothing of queues, stores or HTTP.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from turnline.protocol import Attachment, ChatEvent, JsonObject, TurnRecord


@dataclass(slots=True, kw_only=True)
class Turn:
    """One turn as its agent sees it.  Not frozen: `state` is the agent's to change.

    Attributes:
        prompt: the user's message; empty only with `resume` or `requests`.
        history: the session's finished turns, oldest first; this one is not among them.
        state: the session's JSON object; what it holds when the agent returns is saved with the
            reply in one step, or not at all.
        files / images: attachments in the order sent.
        user_id: the authenticated user, else what the caller said, else empty.
        attempt: 1, or more when an earlier attempt failed or its runner died.
        deadline: seconds since the epoch; the turn is cut off then.  0 means none.
        cancelled: set when the turn is to stop (cancelled, past its deadline or fenced); async
            agents are cancelled as well, sync ones should look at it between steps.
        resume / requests / scheduled_task_id / scheduled_time / extra: see `ChatRequest`.
    """

    request_id: str
    session_id: str
    prompt: str
    history: Sequence[TurnRecord] = ()
    state: dict[str, Any] = field(default_factory=dict)
    files: Sequence[Attachment] = ()
    images: Sequence[Attachment] = ()
    user_id: str = ""
    group_id: str = ""
    thread_name: str = ""
    attempt: int = 1
    deadline: float = 0.0
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    resume: JsonObject | None = None
    requests: Sequence[JsonObject] = ()
    scheduled_task_id: str = ""
    scheduled_time: str = ""
    extra: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An agent's answer.

    Attributes:
        text: the whole answer.
        status_code: HTTP status for the caller, 200..599.
        extra: further top-level keys of the reply body.
        items: what the framework wants to find again in `TurnRecord.items` next turn.
    """

    text: str
    status_code: int = 200
    extra: Mapping[str, Any] = field(default_factory=dict)
    items: Sequence[JsonObject] = ()


class AgentError(Exception):
    """Root of what an agent raises on purpose.

        AgentError
        ├── RetryableAgentError   try again (a dependency is down, the model is over its rate)
        └── FatalAgentError       an answer in itself: told to the caller, never retried

    Any other exception is treated as retryable, and the caller is told no detail of it.
    """


class RetryableAgentError(AgentError):
    """Try the turn again.

    Attributes:
        retry_after: seconds to wait; None uses the configured back-off.
        spends_attempt: False for a provider's rate limit, which has a budget of its own
            (until the turn's deadline) instead of counting towards `max_receive_count`.
    """

    def __init__(
        self,
        message: str = "",
        *,
        retry_after: float | None = None,
        spends_attempt: bool = True,
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.spends_attempt = spends_attempt


class FatalAgentError(AgentError):
    """End the turn with this answer.

    Attributes:
        message: shown to the caller as it is.
        status_code: HTTP status, 400..599.
    """

    def __init__(self, message: str, *, status_code: int = 500) -> None:
        super().__init__(message)
        self.message = message
        self.status_code = status_code


class Agent(Protocol):
    """What the runner runs."""

    @property
    def name(self) -> str:
        """Names the agent in requests; unique in a registry."""
        ...

    @property
    def description(self) -> str:
        """One sentence for people; may be empty."""
        ...

    def run(self, turn: Turn) -> AsyncIterator[ChatEvent | Reply]:
        """Answer a turn: any number of events, then one Reply, last.

        An agent that streams text ends with a Reply whose text is all its deltas joined.  The
        runner closes the iterator when the turn stops early; clean up in `finally`.

        Raises:
            AgentError: see there.
        """
        ...
