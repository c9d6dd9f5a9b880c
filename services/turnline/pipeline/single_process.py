"""The whole pipeline in one process on the in_memory transport: every service, wired by hand.

Read top to bottom: what is opened first is closed last.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from starlette.routing import BaseRoute

from turnline.agent import AgentRegistry
from turnline.auth import AuthValidator
from turnline.config import Settings
from turnline.frontdoor import Admission, admin_routes, web_app
from turnline.gateway.custom import RouteHandler
from turnline.gateway.hub import Hub
from turnline.gateway.routes import SOCKET_PATH
from turnline.gateway.wiring import GRPC_SERVICE as GRPC_GATEWAY
from turnline.gateway.wiring import open_gateway, open_hub
from turnline.hosting import (
    Backends,
    ConsumeLoop,
    LeaseKeeper,
    Lifecycle,
    Parts,
    WebServer,
    open_backends,
    open_grpc,
    operator_routes,
    run_parts,
    web_options,
)
from turnline.protocol.clock import SystemClock
from turnline.push import PushSignals, Routes, UserPush
from turnline.push.endpoint import PushHandler
from turnline.push.endpoint_routes import push_routes
from turnline.request_handler import WaitingRoom, build_routes
from turnline.request_handler.wiring import GRPC_SERVICE as GRPC_CHAT
from turnline.request_handler.wiring import open_rest
from turnline.responder.wiring import responder_loop
from turnline.runner.wiring import runner_loop
from turnline.store import LOCAL_ENDPOINT
from turnline.telemetry import watch_loop_lag

_CLOSE_SPREAD_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleProcess:
    """What the user brings.

    Attributes:
        rest_validator: checks tokens of REST callers; None leaves REST open.
        socket_validator: checks tokens of sockets; None means no /ws.
        socket_routes: custom WebSocket routes by name.
        started: called with the port when everything is up.
        grpc_started: called with the port of gRPC, once it is bound; not where that is off.
    """

    agents: AgentRegistry
    rest_validator: AuthValidator | None = None
    socket_validator: AuthValidator | None = None
    socket_routes: Mapping[str, RouteHandler] = field(default_factory=dict)
    started: Callable[[int], None] = lambda _: None
    grpc_started: Callable[[int], None] = lambda _: None


async def serve_single_process(
    settings: Settings, lifecycle: Lifecycle, what: SingleProcess
) -> None:
    """Run the pipeline until the lifecycle drains, then stop it within `execution.drain_grace`.

    Raises:
        ConfigurationError: the settings do not fit this topology, or the port is taken.
    """
    what.agents.threads.resize(settings.execution.sync_agent_threads)
    async with open_backends(settings, SystemClock()) as backends:
        keeper = LeaseKeeper(backends.metrics)
        hub = open_hub(settings, backends, endpoint=LOCAL_ENDPOINT)
        push = UserPush(
            connections=backends.stores.connections,
            routes=Routes(local=hub),
            signals=PushSignals(backends.metrics),
            clock=backends.clock,
        )
        runner = runner_loop(settings, backends, keeper, agents=what.agents)
        responder = responder_loop(settings, backends, keeper, push=push)
        admission = Admission(
            queue=backends.transport.input,
            replies=backends.stores.replies,
            sessions=backends.stores.sessions,
            clock=backends.clock,
            accepting=lambda: lifecycle.accepting,
            knows_agent=what.agents.knows,
        )
        waiting = WaitingRoom()
        rest = open_rest(
            settings,
            backends,
            admission=admission,
            waiting=waiting,
            validator=what.rest_validator,
            agents=what.agents.names,
        )
        routes: list[BaseRoute] = [
            *build_routes(rest),
            *_operator_routes(settings, backends, lifecycle, runner, responder),
            *push_routes(_push_handler(settings, hub, push)),
        ]
        background: list[Callable[[], Awaitable[None]]] = [
            keeper.run,
            lambda: watch_loop_lag(backends.metrics, backends.clock),
        ]
        web = WebServer(web_app(routes), web_options(settings))
        over_grpc: dict[str, object] = {GRPC_CHAT: rest}
        if what.socket_validator is not None:
            gateway = open_gateway(
                settings,
                backends,
                hub=hub,
                admission=admission,
                validator=what.socket_validator,
                routes=what.socket_routes,
                accepting=lambda: lifecycle.accepting,
            )
            web.serve_sockets(SOCKET_PATH, gateway.endpoint)
            over_grpc[GRPC_GATEWAY] = gateway.grpc_desk
            background.append(gateway.refresh)
        servers = open_grpc(settings, lifecycle, over_grpc)
        for server in servers:
            what.grpc_started(server.port)
        parts = Parts(
            web=web,
            servers=servers,
            runner=runner,
            responder=responder,
            output=backends.transport.output,
            background=background,
            farewells=[waiting.close, lambda: hub.close_all(spread=_CLOSE_SPREAD_SECONDS)],
        )
        await run_parts(
            parts,
            lifecycle,
            grace=settings.execution.drain_grace,
            on_ready=lambda: what.started(web.port),
        )


def _operator_routes(
    settings: Settings,
    backends: Backends,
    lifecycle: Lifecycle,
    runner: ConsumeLoop,
    responder: ConsumeLoop,
) -> list[BaseRoute]:
    alive = {"runner": lambda: runner.reading, "responder": lambda: responder.reading}
    return [
        *operator_routes(settings, backends, lifecycle, alive=alive),
        *admin_routes(settings, backends.transport),
    ]


def _push_handler(settings: Settings, hub: Hub, push: UserPush) -> PushHandler:
    secret = settings.websocket_api.push_auth_token
    token = secret.get_secret_value() if secret else ""
    return PushHandler(token=token, local=hub, users=push, inbox=settings.websocket_api.inbox)
