"""The pipeline of one process for the length of one invocation, its queues in memory.

Knows neither events nor who asked.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from turnline.agent import AgentRegistry
from turnline.config import Settings
from turnline.hosting import Backends, LeaseKeeper
from turnline.push import UserPush
from turnline.responder.wiring import responder_loop
from turnline.runner.wiring import runner_loop
from turnline.telemetry import get_logger
from turnline.transport import Queue, Transport

_log = get_logger("aws")

# From a turn's deadline to the end of its invocation: to stop the agent (5 s), to say so, to push.
_RESERVE_SECONDS = 8.0
# From the end of all work to the end of the invocation.
_LAST_SECONDS = 1.5
_RESERVED_SHARE = 0.3
_LAST_SHARE = 0.1
_SETTLED_SECONDS = 0.25
_LOOK_SECONDS = 0.005


@asynccontextmanager
async def working(
    settings: Settings,
    backends: Backends,
    keeper: LeaseKeeper,
    *,
    agents: AgentRegistry,
    push: UserPush | None,
) -> AsyncIterator[None]:
    """Run turns and bring answers for the length of the block; what is left then is stopped.

    Args:
        push: to callers' sockets; None: answers are kept alone.
    """
    stop = asyncio.Event()
    runner = runner_loop(settings, backends, keeper, agents=agents)
    responder = responder_loop(settings, backends, keeper, push=push)
    async with asyncio.TaskGroup() as tasks:
        for loop in (runner, responder):
            tasks.create_task(loop.run(stop, grace=_SETTLED_SECONDS))
        try:
            yield
        finally:
            stop.set()


async def emptied(transport: Transport, *, until: float) -> bool:
    """Wait until both queues hold nothing; False if they do at `until`, a time of the loop.

    An answer is sent before its request is removed.
    """
    try:
        async with asyncio.timeout_at(until):
            for queue in (transport.input, transport.output):
                while True:
                    if await is_empty(queue):
                        break
                    await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError:
        return False
    return True


async def is_empty(queue: Queue) -> bool:
    """Whether nothing waits there and nothing is worked on."""
    stats = await queue.stats()
    return not stats.waiting and not stats.in_flight


def finish_of(seconds: float) -> float:
    """Give when work must end, in the loop's time, of an invocation with so many seconds left."""
    left = seconds - min(_LAST_SECONDS, seconds * _LAST_SHARE)
    return asyncio.get_running_loop().time() + left


def seconds_of_turn(seconds: float) -> float:
    """Give how long a turn may take in an invocation with so many seconds left."""
    return seconds - min(_RESERVE_SECONDS, seconds * _RESERVED_SHARE)


class TurnsOfInvocations:
    """Makes turns end before their invocations, and says once that they might be cut."""

    def __init__(self) -> None:
        self._said = False

    def within(self, settings: Settings, seconds: float) -> Settings:
        """Give the settings with no turn longer than an invocation with so many seconds left."""
        execution, longest = settings.execution, seconds_of_turn(seconds)
        if execution.turn_timeout <= longest:
            return settings
        if not self._said:
            self._said = True
            _log.warning(
                "config.warning",
                setting="execution.turn_timeout",
                reason=f"turns might take {execution.turn_timeout:g} s, but the function's timeout "
                f"leaves them {longest:.0f} s; raise the timeout, or lower turn_timeout",
            )
        shorter = execution.model_copy(update={"turn_timeout": longest})
        return settings.model_copy(update={"execution": shorter})
