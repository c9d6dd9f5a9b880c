"""The push endpoint as a process of its own: it needs a connection store and no transport.

Pushes come over HTTP and, where `websocket_api.push_grpc_port` is set, over gRPC as well.  Read top
to bottom: what is opened first is closed last.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from turnline.config import Settings, load_adapter
from turnline.errors import ConfigurationError
from turnline.frontdoor import web_app
from turnline.hosting import Lifecycle, Ops, Parts, WebServer, run_parts, web_options
from turnline.hosting.ops import Check
from turnline.hosting.parts import Server
from turnline.protocol.clock import Clock
from turnline.push.endpoint import PushHandler
from turnline.push.endpoint_routes import push_routes
from turnline.push_endpoint.wiring import open_push
from turnline.store import ConnectionStore
from turnline.telemetry import Metrics, watch_loop_lag

# By name, so that a process without gRPC need not load it.
_BY_NAME = MappingProxyType({"grpc": "turnline.push_endpoint.grpc_port"})
_NO_LIBRARY = (
    "websocket_api.push_grpc_port: is set, but this installation lacks gRPC; install grpcio, "
    "grpcio-health-checking and grpcio-reflection, or unset it"
)


async def serve_push_endpoint(
    settings: Settings,
    lifecycle: Lifecycle,
    *,
    connections: ConnectionStore,
    clock: Clock,
    checks: Mapping[str, Check] = MappingProxyType({}),
    started: Callable[[int], None] = lambda _port: None,
    grpc_started: Callable[[int], None] = lambda _port: None,
) -> None:
    """Serve pushes to users until the lifecycle drains.

    Args:
        checks: what must answer for this process to be ready.
        started: called with the port that is listened on, once it is bound.
        grpc_started: the same for the port of gRPC; not called where that is off.

    Raises:
        ConfigurationError: the port is taken.
    """
    metrics = Metrics()

    async def scrape() -> tuple[bytes, str]:
        return metrics.render()

    ops = Ops(
        lifecycle=lifecycle,
        alive={},
        checks=checks,
        render_metrics=scrape if settings.telemetry.metrics else None,
    )
    async with open_push(settings, connections, metrics, clock) as handler:
        port = settings.websocket_api.push_port
        app = web_app([*ops.routes(), *push_routes(handler)])
        web = WebServer(app, web_options(settings, port=port))
        servers = _grpc_servers(settings, handler)
        started(web.port)
        for server in servers:
            grpc_started(server.port)
        parts = Parts(
            web=web,
            servers=servers,
            background=[lambda: watch_loop_lag(metrics, clock)],
        )
        await run_parts(parts, lifecycle, grace=settings.execution.drain_grace)


def _grpc_servers(settings: Settings, handler: PushHandler) -> list[Server]:
    """Bind the gRPC port, if there is to be one."""
    if settings.websocket_api.push_grpc_port is None:
        return []
    module = load_adapter(_BY_NAME, "grpc")
    if module is None:
        raise ConfigurationError([_NO_LIBRARY])
    server: Server = module.open_server(settings, handler)
    return [server]
