"""Direct mode in a container: the process that takes frames runs the agents, with no queue between.

The pipeline of one process, with API Gateway before its sockets; its queues are in memory.
Read top to bottom: what is opened first is closed last.
"""

from dataclasses import replace

from turnline.agent import AgentRegistry
from turnline.auth import AuthValidator
from turnline.aws.ecs_sockets import socket_routes
from turnline.aws.gateway_push import gateway_user_push, open_gateway_routes
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
from turnline.responder.wiring import responder_loop
from turnline.runner.wiring import runner_loop
from turnline.telemetry import watch_loop_lag


async def serve_direct(
    process: Standalone, validator: AuthValidator | None, *, agents: AgentRegistry
) -> None:
    """Serve sockets and run their turns until the lifecycle drains.

    Turns that are not through by the end of `execution.drain_grace` are stopped, and their callers
    told to send them again: another process takes them.
    """
    settings, lifecycle = process.settings, process.lifecycle
    agents.threads.resize(settings.execution.sync_agent_threads)
    unanswered = Unanswered()
    backends = replace(process.backends, transport=unanswered.over(process.backends.transport))
    keeper = LeaseKeeper(backends.metrics)
    async with open_gateway_routes(settings) as ways:
        push = gateway_user_push(ways, backends)
        runner = runner_loop(settings, backends, keeper, agents=agents)
        responder = responder_loop(settings, backends, keeper, push=push)
        desk = socket_desk(
            settings,
            backends,
            ways,
            validator=validator,
            accepting=lambda: lifecycle.accepting,
            agents=agents,
        )
        alive = {"runner": lambda: runner.reading, "responder": lambda: responder.reading}
        routes = [
            *socket_routes(desk, endpoint=settings.websocket_api.endpoint_url or ""),
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
            farewells=[lambda: unanswered.say_farewell(push)],
        )
        await run_parts(parts, lifecycle, grace=settings.execution.drain_grace)
