"""Direct mode on Lambda: the function that takes a frame runs the agent, with no queue between.

The pipeline of one process, for one frame: its queues are in memory and live as long as the
invocation, which lasts until the answer was pushed.  What outlives a sandbox is in the stores: a
frame that is sent again attaches to its turn, or is answered with its end.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from turnline.agent import AgentRegistry
from turnline.auth import AuthValidator
from turnline.aws.gateway_push import GatewayRoutes, gateway_user_push
from turnline.aws.socket_wiring import socket_desk
from turnline.aws.websocket_events import SocketEvent
from turnline.config import Settings
from turnline.errors import TransportUnavailableError, TurnDeadlineExceededError
from turnline.gateway.frames import failed
from turnline.hosting import Backends, LeaseKeeper
from turnline.push import Frame, UserPush
from turnline.responder.wiring import responder_loop
from turnline.runner.wiring import runner_loop
from turnline.telemetry import bind_turn, get_logger
from turnline.transport import Queue, Transport
from turnline.transport.registry import open_transport

_log = get_logger("aws")

# From a turn's deadline to the end of its invocation: to stop the agent (5 s), to say so, to push.
_RESERVE_SECONDS = 8.0
# From the end of all work to the end of the invocation.
_LAST_SECONDS = 1.5
_RESERVED_SHARE = 0.3
_LAST_SHARE = 0.1
_SETTLED_SECONDS = 0.25
_LOOK_SECONDS = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectParts:
    """What an environment holds for its frames."""

    settings: Settings
    backends: Backends
    routes: GatewayRoutes
    keeper: LeaseKeeper
    agents: AgentRegistry
    validator: AuthValidator | None


class DirectFrames:
    """Handles frames one by one, each to its end."""

    def __init__(self, parts: DirectParts) -> None:
        self._parts = parts
        self._push: UserPush = gateway_user_push(parts.routes, parts.backends)
        self._said_shorter = False

    async def message(self, event: SocketEvent, *, endpoint: str, seconds: float) -> Frame | None:
        """Act on a frame within `seconds`; give the frame that answers it, None: nothing to say.

        A turn is acknowledged and answered by pushes, and told here only if it has no end in time.
        """
        parts = self._parts
        settings = self._within(seconds - min(_RESERVE_SECONDS, seconds * _RESERVED_SHARE))
        finish = seconds - min(_LAST_SECONDS, seconds * _LAST_SHARE)
        began = asyncio.get_running_loop().time()
        async with open_transport(settings, parts.backends.clock) as transport:
            over = replace(parts.backends, transport=transport)
            desk = socket_desk(
                settings, over, parts.routes, validator=parts.validator, agents=parts.agents
            )
            frame = await desk.message(
                event.connection_id, event.text, endpoint=endpoint, user_id=event.user_id
            )
            if frame is None or await _is_empty(transport.input):
                return frame
            await self._acknowledge(event.connection_id, endpoint, frame)
            if await self._work(settings, over, until=began + finish):
                return None
        late = TurnDeadlineExceededError()
        with bind_turn(request_id=frame["request_id"], session_id=frame["session_id"]):
            _log.error("turn.failed", code=late.code.value)
        return failed(late, request_id=frame["request_id"])

    async def _acknowledge(self, connection_id: str, endpoint: str, frame: Frame) -> None:
        """Say that the turn is taken, before any piece of its answer."""
        try:
            await self._parts.routes.to(endpoint).push(connection_id, [frame])
        except TransportUnavailableError as error:
            # Its answer is tried for longer, and kept.
            _log.warning("dependency.unavailable", dependency="api gateway", reason=error.message)

    async def _work(self, settings: Settings, over: Backends, *, until: float) -> bool:
        """Run the turn and push its answer; False if that took too long and was stopped."""
        parts, stop = self._parts, asyncio.Event()
        runner = runner_loop(settings, over, parts.keeper, agents=parts.agents)
        responder = responder_loop(settings, over, parts.keeper, push=self._push)
        async with asyncio.TaskGroup() as tasks:
            for loop in (runner, responder):
                tasks.create_task(loop.run(stop, grace=_SETTLED_SECONDS))
            try:
                async with asyncio.timeout_at(until):
                    await _until_empty(over.transport)
            except TimeoutError:
                return False
            finally:
                stop.set()
        return True

    def _within(self, seconds: float) -> Settings:
        """Give the settings with no turn longer than the invocation."""
        settings = self._parts.settings
        execution = settings.execution
        if execution.turn_timeout <= seconds:
            return settings
        if not self._said_shorter:
            self._said_shorter = True
            _log.warning(
                "config.warning",
                setting="execution.turn_timeout",
                reason=f"turns might take {execution.turn_timeout:g} s, but the function's timeout "
                f"leaves them {seconds:.0f} s; raise the timeout, or lower turn_timeout",
            )
        shorter = execution.model_copy(update={"turn_timeout": seconds})
        return settings.model_copy(update={"execution": shorter})


@asynccontextmanager
async def open_direct(
    settings: Settings,
    backends: Backends,
    routes: GatewayRoutes,
    *,
    agents: AgentRegistry,
    validator: AuthValidator | None,
) -> AsyncIterator[DirectFrames]:
    """Open what frames need beside the stores and the way to sockets."""
    agents.threads.resize(settings.execution.sync_agent_threads)
    keeper = LeaseKeeper(backends.metrics)
    async with asyncio.TaskGroup() as tasks:
        keeping = tasks.create_task(keeper.run())
        yield DirectFrames(
            DirectParts(
                settings=settings,
                backends=backends,
                routes=routes,
                keeper=keeper,
                agents=agents,
                validator=validator,
            )
        )
        keeping.cancel()


async def _until_empty(transport: Transport) -> None:
    """Wait until both queues hold nothing; an answer is sent before its request is removed."""
    for queue in (transport.input, transport.output):
        while True:
            if await _is_empty(queue):
                break
            await asyncio.sleep(_LOOK_SECONDS)


async def _is_empty(queue: Queue) -> bool:
    stats = await queue.stats()
    return not stats.waiting and not stats.in_flight
