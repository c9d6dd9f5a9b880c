"""`@agent`: makes an agent of a Python function.

    @agent
    async def echo(turn: Turn) -> str:
        return turn.prompt

Four kinds of function work: `async def` that returns, `async def` that yields, `def` that returns,
`def` that yields.  What is returned is the answer (str, Reply or dict).  What is yielded is
streamed: a str is a piece of the answer, a ChatEvent goes out as it is, and a Reply, last, adds
what text alone cannot say.  Plain `def` functions run in threads (`turnline.agent.threads`).
"""

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from functools import update_wrapper
from typing import Any, Generic, TypeVar, overload

from turnline.agent.answers import (
    AgentContractError,
    TextStream,
    answer_of,
    check_state,
    checked_reply,
    json_fault,
    storable_text,
)
from turnline.agent.port import Reply, Turn
from turnline.agent.registry import AgentRegistry, default_registry
from turnline.agent.threads import BoundedThreads
from turnline.errors import ConfigurationError
from turnline.protocol import ChatEvent, EventType

R = TypeVar("R")


class FunctionAgent(Generic[R]):
    """An agent made of a function; calling it calls the plain function.

    Args:
        name: empty takes the function's name.
        description: empty takes the first line of the function's docstring.
        threads: where a plain `def` function runs.

    Raises:
        ConfigurationError: the function does not take exactly one parameter, the turn.
    """

    def __init__(
        self,
        function: Callable[[Turn], R],
        *,
        name: str = "",
        description: str = "",
        threads: BoundedThreads,
    ) -> None:
        update_wrapper(self, function)
        self._function = function
        self._name = name or getattr(function, "__name__", type(function).__name__)
        self._description = description or _first_line(inspect.getdoc(function))
        self._threads = threads
        if fault := _signature_fault(function):
            raise ConfigurationError([f"agent {self._name!r}: {fault}"])

    def __call__(self, turn: Turn) -> R:
        """Call the plain function, with no check and no thread."""
        return self._function(turn)

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
            AgentContractError: the function yielded or returned what is no answer, or left a
                state that is no JSON.
        """
        async with aclosing(self._answers(turn)) as answers:
            async for answer in answers:
                if isinstance(answer, Reply):
                    check_state(self._name, turn.state)
                yield answer

    def _answers(self, turn: Turn) -> AsyncGenerator[ChatEvent | Reply, None]:
        function: Callable[[Turn], Any] = self._function
        if inspect.isasyncgenfunction(function):
            return self._streamed(function(turn))
        if inspect.isgeneratorfunction(function):
            return self._streamed(self._in_thread(lambda: function(turn), turn))
        if inspect.iscoroutinefunction(function):
            return self._awaited(function(turn))
        return self._computed(lambda: function(turn), turn)

    async def _awaited(self, result: Awaitable[object]) -> AsyncGenerator[ChatEvent | Reply, None]:
        yield answer_of(self._name, await result)

    async def _computed(
        self, compute: Callable[[], object], turn: Turn
    ) -> AsyncGenerator[ChatEvent | Reply, None]:
        async with aclosing(self._in_thread(lambda: _once(compute), turn)) as results:
            [result] = [result async for result in results]
        if inspect.iscoroutine(result):
            result.close()
            raise AgentContractError(self._name, "returned a coroutine; make it an async def")
        yield answer_of(self._name, result)

    def _in_thread(
        self, make: Callable[[], Iterator[object]], turn: Turn
    ) -> AsyncGenerator[object, None]:
        return self._threads.iterate(make, on_stop=turn.cancelled.set)

    async def _streamed(
        self, yielded: AsyncGenerator[object, None]
    ) -> AsyncGenerator[ChatEvent | Reply, None]:
        text = TextStream()
        reply: Reply | None = None
        async with aclosing(yielded):
            async for item in yielded:
                if reply is not None:
                    raise AgentContractError(self._name, "yielded something after its Reply")
                if isinstance(item, Reply):
                    reply = item
                    continue
                for event in self._events(item, text):
                    yield event
        for event in text.close():
            yield event
        yield self._last(text.text, reply)

    def _events(self, item: object, text: TextStream) -> Iterator[ChatEvent]:
        match item:
            case str():
                yield from text.add(item)
            case ChatEvent(type=EventType.TEXT_DELTA, message_id=""):
                yield from text.add(item.content)
            case ChatEvent():
                event = replace(item, content=storable_text(item.content))
                if fault := json_fault(event.data, "data"):
                    raise AgentContractError(self._name, f"yielded an event whose {fault}")
                text.note(event)
                yield event
            case _:
                raise AgentContractError(
                    self._name,
                    f"yielded a {type(item).__name__}; yield str, ChatEvent or a Reply at the end",
                )

    def _last(self, streamed: str, reply: Reply | None) -> Reply:
        """The Reply that ends a stream: its text is what was streamed."""
        if reply is None:
            return Reply(text=streamed)
        reply = checked_reply(self._name, reply)
        if not streamed or reply.text == streamed:
            return reply
        if reply.text:
            raise AgentContractError(
                self._name,
                "ended with a Reply whose text differs from what it streamed; leave it empty",
            )
        return replace(reply, text=streamed)


@overload
def agent(function: Callable[[Turn], R], /) -> FunctionAgent[R]: ...


@overload
def agent(
    name: str = "", /, *, description: str = "", registry: AgentRegistry | None = None
) -> Callable[[Callable[[Turn], R]], FunctionAgent[R]]: ...


def agent(
    first: Callable[[Turn], R] | str = "",
    /,
    *,
    description: str = "",
    registry: AgentRegistry | None = None,
) -> FunctionAgent[R] | Callable[[Callable[[Turn], R]], FunctionAgent[R]]:
    """Make a function an agent and register it: `@agent` or `@agent("name", description="...")`.

    The first agent registered answers requests that name none.

    Args:
        registry: None means `default_registry`, which the runner serves.

    Raises:
        ConfigurationError: the function cannot be an agent, or its name is taken.
    """
    chosen = default_registry if registry is None else registry

    def decorate(function: Callable[[Turn], R]) -> FunctionAgent[R]:
        made = FunctionAgent(
            function,
            name=first if isinstance(first, str) else "",
            description=description,
            threads=chosen.threads,
        )
        chosen.register(made)
        return made

    return decorate if isinstance(first, str) else decorate(first)


def _once(compute: Callable[[], object]) -> Iterator[object]:
    yield compute()


def _first_line(doc: str | None) -> str:
    return doc.strip().partition("\n")[0] if doc else ""


def _signature_fault(function: object) -> str:
    """Say why a function cannot take a turn; empty when it can."""
    if not callable(function):
        return f"a {type(function).__name__} is no function"
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if len(parameters) != 1 or parameters[0].kind not in positional:
        name = getattr(function, "__qualname__", "the function")
        return f"an agent takes exactly one parameter, the turn; this is {name}{signature}"
    if parameters[0].annotation in (str, "str"):
        return "an agent gets a Turn, not a str; the message is turn.prompt"
    return ""
