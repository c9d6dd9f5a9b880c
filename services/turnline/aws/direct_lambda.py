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
from turnline.aws.invocation_work import (
    TurnsOfInvocations,
    emptied,
    finish_of,
    is_empty,
    working,
)
from turnline.aws.socket_wiring import socket_desk
from turnline.aws.websocket_events import SocketEvent
from turnline.config import Settings
from turnline.errors import TransportUnavailableError, TurnDeadlineExceededError
from turnline.gateway.frames import failed
from turnline.hosting import Backends, LeaseKeeper
from turnline.push import Frame, UserPush
from turnline.telemetry import bind_turn, get_logger
from turnline.transport.registry import open_transport

_log = get_logger("aws")


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
        self._turns = TurnsOfInvocations()

    async def message(self, event: SocketEvent, *, endpoint: str, seconds: float) -> Frame | None:
        """Act on a frame within `seconds`; give the frame that answers it, None: nothing to say.

        A turn is acknowledged and answered by pushes, and told here only if it has no end in time.
        """
        parts = self._parts
        settings = self._turns.within(parts.settings, seconds)
        until = finish_of(seconds)
        async with open_transport(settings, parts.backends.clock) as transport:
            over = replace(parts.backends, transport=transport)
            desk = socket_desk(
                settings, over, parts.routes, validator=parts.validator, agents=parts.agents
            )
            frame = await desk.message(
                event.connection_id, event.text, endpoint=endpoint, user_id=event.user_id
            )
            if frame is None or await is_empty(transport.input):
                return frame
            await self._acknowledge(event.connection_id, endpoint, frame)
            if await self._work(settings, over, until=until):
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
        parts = self._parts
        async with working(settings, over, parts.keeper, agents=parts.agents, push=self._push):
            return await emptied(over.transport, until=until)


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
