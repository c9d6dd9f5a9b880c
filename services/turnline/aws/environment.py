"""One Lambda execution environment: an event loop that outlives invocations, and what it holds.

Lambda calls a plain function, one call at a time, and freezes the process in between.  The loop
runs in a thread of its own, so that connections, leases and waiting are the same objects from one
call to the next.  Knows no event.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import uvloop

Event = dict[str, Any]


class LambdaContext(Protocol):
    """What Lambda says of an invocation."""

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until Lambda ends the sandbox."""
        ...


class Invocation(Protocol):
    """What an opened environment does for each event, on its loop."""

    def __call__(self, event: Event, seconds: float, /) -> Awaitable[Any]:
        """Answer an event within `seconds`, after which Lambda ends the sandbox."""
        ...


Opening = Callable[[], AbstractAsyncContextManager[Invocation]]
Handler = Callable[[Event, LambdaContext], Any]


class EnvironmentLostError(BaseException):
    """The loop has ended, so no invocation can be answered: the process must.

    No `Exception`: the Lambda runtime would report that and go on.
    """


class Environment:
    """Opens once, then serves invocations until the process ends."""

    def __init__(self, opening: Opening) -> None:
        """Open it; returns when everything is up.

        Raises:
            ConfigurationError: what is wrong with the settings or with what they name.
            TurnlineError: what they name does not answer.
        """
        self._opening = opening
        self._opened: Future[tuple[asyncio.AbstractEventLoop, Invocation]] = Future()
        # A daemon: it does not keep a process alive that Lambda's runtime has left.
        self._thread = threading.Thread(target=self._run, name="turnline-loop", daemon=True)
        self._thread.start()
        self._loop, self._invocation = self._opened.result()

    def invoke(self, event: Event, context: LambdaContext) -> Any:  # noqa: ANN401 - any JSON
        """Answer one event; what Lambda calls.

        Raises:
            Exception: what the invocation raised; Lambda reports it as the function's error.
            EnvironmentLostError: the loop has ended.
        """
        if not self._thread.is_alive():
            raise EnvironmentLostError("the event loop has ended")
        seconds = context.get_remaining_time_in_millis() / 1000.0
        answer = asyncio.run_coroutine_threadsafe(self._answer(event, seconds), self._loop)
        return answer.result()

    def join(self, seconds: float) -> None:
        """Wait until the loop has ended, for `seconds` at most."""
        self._thread.join(seconds)

    async def _answer(self, event: Event, seconds: float) -> Any:  # noqa: ANN401 - any JSON
        return await self._invocation(event, seconds)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            if not self._opened.done():
                self._opened.set_exception(error)
                return
            raise

    async def _serve(self) -> None:
        async with self._opening() as invocation:
            self._opened.set_result((asyncio.get_running_loop(), invocation))
            await asyncio.Event().wait()


class AtInit:
    """A handler that opens its environment when it is first read from its class.

    `handler = ServerlessAgentRunner.handle` stands at the end of an application's file, which
    Lambda imports in its init phase: faults are reported there, all of them, before any event.

    Args:
        opening: makes the opening from the class it is read from.
    """

    def __init__(self, opening: Callable[[Any], Opening]) -> None:
        self._opening = opening
        self._environments: dict[type, Environment] = {}

    def __get__(self, _instance: object, owner: type) -> Handler:
        """Give the handler."""
        environment = self._environments.get(owner)
        if environment is None:
            environment = self._environments[owner] = Environment(self._opening(owner))
        return environment.invoke
