"""Direct mode in a container: the process that callers reach runs the agents, without queues.

The pipeline of one process, with API Gateway before it; its queues are in memory.
Read top to bottom: what is opened first is closed last.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace

from starlette.routing import BaseRoute

from turnline.agent import AgentRegistry
from turnline.auth import AuthValidator
from turnline.aws.checks import WEBSOCKET_MODES
from turnline.aws.direct_rest import direct_client_routes
from turnline.aws.ecs_sockets import socket_routes
from turnline.aws.gateway_push import gateway_user_push, open_gateway_routes
from turnline.aws.own_paths import OwnPaths
from turnline.aws.socket_wiring import socket_desk
from turnline.aws.unanswered import Unanswered
from turnline.frontdoor import admin_routes, web_app
from turnline.hosting import (
    LeaseKeeper,
    Parts,
    Standalone,
    WebServer,
    operator_routes,
    run_parts,
    web_options,
)
from turnline.push import UserPush
from turnline.request_handler import WaitingRoom
from turnline.responder.wiring import responder_loop
from turnline.runner.wiring import runner_loop
from turnline.telemetry import watch_loop_lag


@dataclass(frozen=True, slots=True, kw_only=True)
class _Callers:
    """How callers reach the process, and answers them.

    Attributes:
        process: with what notes their turns, where somebody has to be told of them.
        push: to their sockets; None: they have none.
        farewell: tells who still waits that the process ends.
    """

    process: Standalone
    routes: list[BaseRoute]
    push: UserPush | None
    farewell: Callable[[], Awaitable[None]]


async def serve_direct(
    process: Standalone, validator: AuthValidator | None, *, agents: AgentRegistry
) -> None:
    """Serve callers and run their turns until the lifecycle drains.

    Turns that are not through by the end of `execution.drain_grace` are stopped, and their callers
    told to send them again: another process takes them.
    """
    agents.threads.resize(process.settings.execution.sync_agent_threads)
    async with _callers(process, validator, agents) as callers:
        await _serve(callers, agents)


def _callers(
    process: Standalone, validator: AuthValidator | None, agents: AgentRegistry
) -> AbstractAsyncContextManager[_Callers]:
    if process.settings.execution.mode in WEBSOCKET_MODES:
        return _over_sockets(process, validator, agents)
    return _over_rest(process, validator, agents)


@asynccontextmanager
async def _over_rest(
    process: Standalone, validator: AuthValidator | None, agents: AgentRegistry
) -> AsyncIterator[_Callers]:
    waiting = WaitingRoom()
    own = OwnPaths().web_routes(max_bytes=process.settings.api.max_body_bytes)
    routes = [*own, *direct_client_routes(process, waiting, validator, agents=agents)]
    yield _Callers(process=process, routes=routes, push=None, farewell=waiting.close)


@asynccontextmanager
async def _over_sockets(
    process: Standalone, validator: AuthValidator | None, agents: AgentRegistry
) -> AsyncIterator[_Callers]:
    settings = process.settings
    unanswered = Unanswered()
    backends = replace(process.backends, transport=unanswered.over(process.backends.transport))
    async with open_gateway_routes(settings) as ways:
        push = gateway_user_push(ways, backends)
        desk = socket_desk(
            settings,
            backends,
            ways,
            validator=validator,
            accepting=lambda: process.lifecycle.accepting,
            agents=agents,
        )
        yield _Callers(
            process=replace(process, backends=backends),
            routes=socket_routes(desk, endpoint=settings.websocket_api.endpoint_url or ""),
            push=push,
            farewell=lambda: unanswered.say_farewell(push),
        )


async def _serve(callers: _Callers, agents: AgentRegistry) -> None:
    process = callers.process
    settings, lifecycle, backends = process.settings, process.lifecycle, process.backends
    keeper = LeaseKeeper(backends.metrics)
    runner = runner_loop(settings, backends, keeper, agents=agents)
    responder = responder_loop(settings, backends, keeper, push=callers.push)
    alive = {"runner": lambda: runner.reading, "responder": lambda: responder.reading}
    routes = [
        *callers.routes,
        *operator_routes(settings, backends, lifecycle, alive=alive),
        *admin_routes(settings, backends.transport),
    ]
    web = WebServer(web_app(routes), web_options(settings))
    process.started(web.port)
    parts = Parts(
        web=web,
        runner=runner,
        responder=responder,
        output=backends.transport.output,
        background=[keeper.run, lambda: watch_loop_lag(backends.metrics, backends.clock)],
        farewells=[callers.farewell],
    )
    await run_parts(parts, lifecycle, grace=settings.execution.drain_grace)
