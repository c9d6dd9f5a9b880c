"""One agent at work: drives it in a task of its own and hands its events over in batches.

The agent runs apart from the code that leases, commits and publishes, so that an agent which
ignores cancellation can be left behind instead of holding its session.  Back-pressure is a bounded
buffer: the agent waits while `MAX_BUFFERED` events are unread.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from turnline.agent import Agent, AgentContractError, Reply, Turn
from turnline.hosting import leave_behind
from turnline.protocol import ChatEvent
from turnline.telemetry import get_logger

_log = get_logger("runner")

MAX_BUFFERED = 256
# Each batch is a message that is sent, stored and pushed by itself; a person reads pieces that come
# 40 ms apart as one flow.  The first, the last and a large one wait for nothing.
PACE_SECONDS = 0.04
LARGE_BATCH = 64
STOP_SECONDS = 5.0


class AgentRun:
    """What an agent has said so far.  Read `batches` to its end, then `error` and `reply`.

    Attributes:
        reply: the agent's answer; None while it runs, and when it ended without one.
        error: what the agent raised; None when it raised nothing.
    """

    def __init__(self, *, wants_events: bool) -> None:
        self._wants_events = wants_events
        self._buffer: list[ChatEvent] = []
        self._readable = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._urgent = asyncio.Event()
        self._ended = False
        self.reply: Reply | None = None
        self.error: Exception | None = None

    async def batches(self) -> AsyncIterator[list[ChatEvent]]:
        """Give the events since the last batch, until the agent is through.

        Batches come `PACE_SECONDS` apart, unless one is large or the last.
        """
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            await self._readable.wait()
            await self._gather(due)
            self._readable.clear()
            self._urgent.clear()
            batch, self._buffer = self._buffer, []
            self._writable.set()
            ended = self._ended
            due = loop.time() + PACE_SECONDS
            if batch:
                yield batch
            if ended:
                return

    async def drive(self, agent: Agent, turn: Turn) -> None:
        """Run the agent to its end, keeping its error instead of raising it."""
        try:
            await self._listen(agent.run(turn), agent.name)
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and _told_to_stop():
                raise
            self.error = _as_exception(error)
        finally:
            self._ended = True
            self._urgent.set()
            self._readable.set()

    def ignore_rest(self) -> None:
        """Let the agent run on without a reader, so that it can come to its end."""
        self._wants_events = False
        self._buffer.clear()
        self._writable.set()

    async def _gather(self, until: float) -> None:
        """Let more events come, until a time or until there is no use in waiting."""
        if asyncio.get_running_loop().time() >= until:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self._urgent.wait()

    async def _listen(self, items: AsyncIterator[ChatEvent | Reply], name: str) -> None:
        try:
            async for item in items:
                if self.reply is not None:
                    raise AgentContractError(name, "gave something after its Reply")
                if isinstance(item, Reply):
                    self.reply = item
                else:
                    await self._put(item)
        finally:
            if (close := getattr(items, "aclose", None)) is not None:
                await close()

    async def _put(self, event: ChatEvent) -> None:
        await self._writable.wait()
        if not self._wants_events:
            return
        self._buffer.append(event)
        self._readable.set()
        if len(self._buffer) >= LARGE_BATCH:
            self._urgent.set()
        if len(self._buffer) >= MAX_BUFFERED:
            self._writable.clear()


def _told_to_stop() -> bool:
    """Whether this task was cancelled, and not just something the agent waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _as_exception(error: BaseException) -> Exception:
    if isinstance(error, Exception):
        return error
    wrapped = RuntimeError(f"the agent ended with {type(error).__name__}")
    wrapped.__cause__ = error
    return wrapped


@asynccontextmanager
async def running(agent: Agent, turn: Turn, *, wants_events: bool) -> AsyncIterator[AgentRun]:
    """Run an agent for the length of the block; leaving early cancels it.

    An agent that does not stop within `STOP_SECONDS` is left behind with an error in the log; what
    it does afterwards reaches nobody.
    """
    run = AgentRun(wants_events=wants_events)
    work = None
    try:
        async with leave_behind(run.drive(agent, turn), after=STOP_SECONDS) as work:
            try:
                yield run
            except BaseException:
                turn.cancelled.set()
                run.ignore_rest()
                raise
    finally:
        if work is not None and work.stuck:
            _log.error("agent.stuck", agent=agent.name, request_id=turn.request_id)
