"""The request handler as a process of its own: routes in front, a broker and shared stores behind.

Chat is served over gRPC as well where `api.grpc_port` is set.  Read top to bottom: what is opened
first is closed last.
"""

from collections.abc import Callable

from starlette.routing import BaseRoute

from turnline.auth import AuthValidator
from turnline.frontdoor import Admission, admin_routes, web_app
from turnline.hosting import (
    Parts,
    Standalone,
    WebServer,
    open_grpc,
    operator_routes,
    run_parts,
    web_options,
)
from turnline.request_handler.routes import RestParts, build_routes
from turnline.request_handler.waiting import WaitingRoom
from turnline.request_handler.wiring import GRPC_SERVICE, open_rest
from turnline.telemetry import watch_loop_lag


async def serve_request_handler(
    process: Standalone,
    *,
    validator: AuthValidator | None = None,
    grpc_started: Callable[[int], None] = lambda _port: None,
) -> None:
    """Serve until the lifecycle drains, then let running requests end within the grace period.

    Args:
        validator: checks bearer tokens; None leaves the routes open.
        grpc_started: called with the port of gRPC, once it is bound; not where that is off.

    Raises:
        ConfigurationError: the port is taken.
    """
    settings, backends = process.settings, process.backends
    waiting = WaitingRoom()
    rest = client_parts(process, waiting, validator)
    routes = [
        *build_routes(rest),
        *admin_routes(process.settings, process.backends.transport),
        *operator_routes(settings, backends, process.lifecycle),
    ]
    web = WebServer(web_app(routes), web_options(settings))
    servers = open_grpc(settings, process.lifecycle, {GRPC_SERVICE: rest})
    process.started(web.port)
    for server in servers:
        grpc_started(server.port)
    parts = Parts(
        web=web,
        servers=servers,
        background=[lambda: watch_loop_lag(backends.metrics, backends.clock)],
        farewells=[waiting.close],
    )
    await run_parts(parts, process.lifecycle, grace=settings.execution.drain_grace)


def client_routes(
    process: Standalone, waiting: WaitingRoom, validator: AuthValidator | None
) -> list[BaseRoute]:
    """Make the REST routes over a broker, and those for dead letters; see `client_parts`."""
    return [
        *build_routes(client_parts(process, waiting, validator)),
        *admin_routes(process.settings, process.backends.transport),
    ]


def client_parts(
    process: Standalone, waiting: WaitingRoom, validator: AuthValidator | None
) -> RestParts:
    """Make what clients' surfaces work on, over a broker.

    Args:
        waiting: where callers wait; close it when no further answer will come.
        validator: checks bearer tokens; None leaves the surfaces open.
    """
    settings, backends, lifecycle = process.settings, process.backends, process.lifecycle
    admission = Admission(
        queue=backends.transport.input,
        replies=backends.stores.replies,
        sessions=backends.stores.sessions,
        clock=backends.clock,
        accepting=lambda: lifecycle.accepting,
    )
    return open_rest(
        settings,
        backends,
        admission=admission,
        waiting=waiting,
        validator=validator,
        # Agents live where the runner is.
        agents=list,
    )
