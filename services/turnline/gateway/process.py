"""The gateway as a process of its own: client sockets in front, a broker and shared stores behind.

Sockets are served over gRPC as well where `api.grpc_port` is set.  Other pods push to this one at
`websocket_api.push_port`: on the client port unless that is set to another, which then serves
pushes alone.  Read top to bottom: what is opened first is closed last.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from starlette.applications import Starlette

from turnline.auth import AuthValidator
from turnline.config import Settings
from turnline.errors import ConfigurationError
from turnline.frontdoor import Admission, web_app
from turnline.gateway.custom import RouteHandler
from turnline.gateway.hub import Hub
from turnline.gateway.routes import SOCKET_PATH
from turnline.gateway.wiring import GRPC_SERVICE, Gateway, open_gateway, open_hub
from turnline.hosting import (
    Parts,
    Standalone,
    WebServer,
    open_grpc,
    operator_routes,
    run_parts,
    web_options,
)
from turnline.push.endpoint import PushHandler
from turnline.push.endpoint_routes import push_routes
from turnline.telemetry import watch_loop_lag

_CLOSE_SPREAD_SECONDS = 0.5


async def serve_gateway(
    process: Standalone,
    *,
    validator: AuthValidator,
    routes: Mapping[str, RouteHandler],
    grpc_started: Callable[[int], None] = lambda _port: None,
) -> None:
    """Hold sockets until the lifecycle drains, then tell their clients to reconnect.

    Args:
        validator: checks the tokens of sockets.
        routes: custom routes by name.
        grpc_started: called with the port of gRPC, once it is bound; not where that is off.

    Raises:
        ConfigurationError: a port is taken, or no address is known at which pods reach this one.
    """
    settings, backends, lifecycle = process.settings, process.backends, process.lifecycle
    # Bound first: the port is part of the address that is recorded with each socket.
    app = web_app([])
    web = WebServer(app, web_options(settings))
    push_app, push_web = _push_side(settings, app, web)
    endpoint = pod_endpoint(settings, pod_ip=process.pod_ip, port=push_web.port)
    hub = open_hub(settings, backends, endpoint=endpoint)
    gateway = _open(process, hub, validator, routes)
    web.serve_sockets(SOCKET_PATH, gateway.endpoint)
    app.router.routes += operator_routes(settings, backends, lifecycle)
    push_app.router.routes += push_routes(_push_handler(settings, hub))
    background: list[Callable[[], Awaitable[None]]] = [
        gateway.refresh,
        lambda: watch_loop_lag(backends.metrics, backends.clock),
    ]
    if push_web is not web:
        background.append(lambda: push_web.run(asyncio.Event()))
    servers = open_grpc(settings, lifecycle, {GRPC_SERVICE: gateway.grpc_desk})
    process.started(web.port)
    for server in servers:
        grpc_started(server.port)
    parts = Parts(
        web=web,
        servers=servers,
        background=background,
        farewells=[lambda: hub.close_all(spread=_CLOSE_SPREAD_SECONDS)],
    )
    await run_parts(parts, lifecycle, grace=settings.execution.drain_grace)


def pod_endpoint(settings: Settings, *, pod_ip: str, port: int) -> str:
    """Give the base URL at which other pods push to this one.

    Raises:
        ConfigurationError: nothing says at which address they reach it.
    """
    host = pod_ip or settings.api.host
    if host in ("0.0.0.0", "::"):
        raise ConfigurationError(
            [
                f"AK_POD_IP: is not set, and api.host ({host}) is no address at which other pods "
                "reach this one; set it to the pod's own, in Kubernetes from status.podIP"
            ]
        )
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _push_side(settings: Settings, app: Starlette, web: WebServer) -> tuple[Starlette, WebServer]:
    """Give the app and server that take pushes: those of clients, unless a port is set apart."""
    port = settings.websocket_api.push_port
    if port is None or port == settings.api.port:
        return app, web
    push_app = web_app([])
    return push_app, WebServer(push_app, web_options(settings, port=port))


def _push_handler(settings: Settings, hub: Hub) -> PushHandler:
    secret = settings.websocket_api.push_auth_token
    token = secret.get_secret_value() if secret is not None else ""
    return PushHandler(token=token, local=hub, users=None)


def _open(
    process: Standalone,
    hub: Hub,
    validator: AuthValidator,
    routes: Mapping[str, RouteHandler],
) -> Gateway:
    backends, lifecycle = process.backends, process.lifecycle
    admission = Admission(
        queue=backends.transport.input,
        replies=backends.stores.replies,
        sessions=backends.stores.sessions,
        clock=backends.clock,
        accepting=lambda: lifecycle.accepting,
    )
    return open_gateway(
        process.settings,
        backends,
        hub=hub,
        admission=admission,
        validator=validator,
        routes=routes,
        accepting=lambda: lifecycle.accepting,
    )
