"""What counts as an agent's answer, checked before it travels.

Agents are other people's code: an answer that no store could keep, or that says two things at
once, is stopped here, where the agent's name is known, instead of breaking a queue later.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from turnline.agent.port import FatalAgentError, Reply
from turnline.protocol import ChatEvent, EventType

MAX_JSON_DEPTH = 100
RESERVED_KEYS = frozenset({"done", "error", "request_id", "result", "session_id"})


class AgentContractError(FatalAgentError):
    """The agent's code broke the agent contract (agent; never retry).

    The caller learns only that the agent failed; `str()` of this error says what is wrong.

    Attributes:
        agent: name of the agent.
        detail: what it did, for its developer.
    """

    def __init__(self, agent: str, detail: str) -> None:
        super().__init__("The agent failed")
        self.agent = agent
        self.detail = detail

    def __str__(self) -> str:
        return f"agent {self.agent!r} {self.detail}"


def new_message_id() -> str:
    """Mint an id for a streamed message: 32 hex digits."""
    return uuid4().hex


def storable_text(text: str) -> str:
    """Give `text` with lone surrogates, which no wire format can carry, replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def json_fault(value: object, where: str, *, depth: int = 0) -> str:
    """Say why `value` is no JSON, naming the place; empty when it is.

    Tuples pass as arrays.  NaN and infinities do not pass, nor does nesting beyond
    `MAX_JSON_DEPTH`.
    """
    if depth > MAX_JSON_DEPTH:
        return f"{where} is nested too deeply"
    match value:
        case None | bool() | int():
            return ""
        case str():
            return "" if storable_text(value) == value else f"{where} is not valid Unicode text"
        case float():
            return "" if value - value == 0.0 else f"{where} is {value}, which JSON cannot hold"
        case Mapping():
            return next(_faults_of_mapping(value, where, depth), "")
        case list() | tuple():
            faults = (json_fault(v, f"{where}[{n}]", depth=depth + 1) for n, v in enumerate(value))
            return next(filter(None, faults), "")
        case _:
            return f"{where} is a {type(value).__name__}, which is no JSON"


def _faults_of_mapping(value: Mapping[Any, Any], where: str, depth: int) -> Iterator[str]:
    for key, inner in value.items():
        if not isinstance(key, str):
            yield f"{where} has the key {key!r}, which is no string"
        elif fault := json_fault(inner, f"{where}[{key!r}]", depth=depth + 1):
            yield fault


def answer_of(agent: str, value: object) -> Reply:
    """Make the Reply of what an agent function returned: a str, a Reply, or a dict.

    A dict holds the text as `result`; its other keys become keys of the reply body.

    Raises:
        AgentContractError: `value` is none of these or cannot be stored.
    """
    match value:
        case Reply():
            return checked_reply(agent, value)
        case str():
            return checked_reply(agent, Reply(text=value))
        case dict():
            if not isinstance(value.get("result"), str):
                raise AgentContractError(agent, "returned a dict without a text under 'result'")
            extra = {key: inner for key, inner in value.items() if key != "result"}
            return checked_reply(agent, Reply(text=value["result"], extra=extra))
        case _:
            raise AgentContractError(
                agent, f"returned a {type(value).__name__}; return str, Reply or dict"
            )


def checked_reply(agent: str, reply: Reply) -> Reply:
    """Give `reply` if it can be stored and sent; its text made storable.

    Raises:
        AgentContractError: naming the first fault.
    """
    if fault := _reply_fault(reply):
        raise AgentContractError(agent, f"answered with a Reply whose {fault}")
    text = storable_text(reply.text)
    if text is reply.text:
        return reply
    return Reply(text=text, status_code=reply.status_code, extra=reply.extra, items=reply.items)


def _reply_fault(reply: Reply) -> str:
    # Agents need not be type-checked, so the declared types prove nothing here.
    text, status, extra, items = _untyped(reply)
    if not isinstance(text, str):
        return f"text is a {type(text).__name__}, not a str"
    if not isinstance(status, int) or not 200 <= status <= 599:
        return f"status_code is {status!r}, not a number from 200 to 599"
    if not isinstance(extra, Mapping):
        return f"extra is a {type(extra).__name__}, not a mapping"
    if taken := sorted(RESERVED_KEYS.intersection(extra)):
        return f"extra has the key {taken[0]!r}, which Turnline sets"
    if isinstance(items, str) or not isinstance(items, Sequence):
        return f"items is a {type(items).__name__}, not a sequence"
    return json_fault(extra, "extra") or json_fault(list(items), "items")


def _untyped(reply: Reply) -> tuple[object, object, object, object]:
    return reply.text, reply.status_code, reply.extra, reply.items


def check_state(agent: str, state: object) -> None:
    """Check the session state an agent leaves behind.

    Raises:
        AgentContractError: it is no JSON object.
    """
    if not isinstance(state, dict):
        raise AgentContractError(agent, f"left a {type(state).__name__} as state, not a dict")
    if fault := json_fault(state, "state"):
        raise AgentContractError(agent, f"left a session state where {fault}")


def call_arguments(call_id: str, piece: str) -> ChatEvent:
    """Give the event of a piece of a tool call's arguments."""
    return ChatEvent(
        type=EventType.TOOL_CALL_ARGS, tool_call_id=call_id, content=storable_text(piece)
    )


class ReasoningStream:
    """Makes reasoning events of pieces of a model's reasoning; one is open at a time."""

    def __init__(self) -> None:
        self._message_id = ""

    def add(self, piece: str) -> Iterator[ChatEvent]:
        """Give the events that a piece makes; an empty piece makes none."""
        if not piece:
            return
        if not self._message_id:
            self._message_id = new_message_id()
            yield ChatEvent(type=EventType.REASONING_START, message_id=self._message_id)
        yield ChatEvent(
            type=EventType.REASONING_DELTA,
            message_id=self._message_id,
            content=storable_text(piece),
        )

    def close(self) -> Iterator[ChatEvent]:
        """Give the event that ends the open reasoning; none when none is open."""
        if self._message_id:
            yield ChatEvent(type=EventType.REASONING_END, message_id=self._message_id)
            self._message_id = ""


class TextStream:
    """Makes message events of pieces of text and keeps the whole text.

    A message opens with its first piece; `close` ends it, and the next piece opens another.
    Messages after the first begin with a blank line, so that the joined text reads well.
    """

    def __init__(self, new_id: Callable[[], str] = new_message_id) -> None:
        self._new_id = new_id
        self._message_id = ""
        self._deltas: list[str] = []

    @property
    def text(self) -> str:
        """All deltas so far, joined."""
        return "".join(self._deltas)

    def add(self, piece: str) -> Iterator[ChatEvent]:
        """Give the events that a piece of text makes; an empty piece makes none."""
        if not piece:
            return
        if not self._message_id:
            self._message_id = self._new_id()
            yield ChatEvent(
                type=EventType.MESSAGE_START, message_id=self._message_id, role="assistant"
            )
            piece = f"\n\n{piece}" if self._deltas else piece
        piece = storable_text(piece)
        self._deltas.append(piece)
        yield ChatEvent(type=EventType.TEXT_DELTA, message_id=self._message_id, content=piece)

    def close(self) -> Iterator[ChatEvent]:
        """Give the event that ends the open message; none when no message is open."""
        if self._message_id:
            yield ChatEvent(type=EventType.MESSAGE_END, message_id=self._message_id)
            self._message_id = ""

    def note(self, event: ChatEvent) -> None:
        """Keep up with a message event that the agent made itself."""
        match event.type:
            case EventType.MESSAGE_START:
                self._message_id = event.message_id
            case EventType.MESSAGE_END:
                self._message_id = ""
            case EventType.TEXT_DELTA:
                self._deltas.append(event.content)
            case _:
                pass
