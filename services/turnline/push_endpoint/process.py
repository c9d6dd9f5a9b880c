"""The push endpoint as a process of its own: it needs a connection store and no transport.

Pushes come over HTTP and, where `websocket_api.push_grpc_port` is set, over gRPC as well.  Read top
to bottom: what is opened first is closed last.
"""

from collections.abc import Callable

from starlette.applications import Starlette

from turnline.config import Settings
from turnline.frontdoor import EXCEPTION_HANDLERS
from turnline.hosting import Lifecycle, Ops, Parts, WebServer, run_parts, web_options
from turnline.hosting.grpc_server import GrpcOptions, GrpcServer, GrpcService
from turnline.protocol.clock import Clock
from turnline.push.endpoint import PushHandler
from turnline.push.endpoint_routes import push_routes
from turnline.push.grpc_service import SERVICE_NAME, GrpcPush
from turnline.push_endpoint.wiring import open_push
from turnline.store import ConnectionStore
from turnline.telemetry import Metrics, watch_loop_lag
from turnline.v1.push_service_pb2_grpc import add_PushServiceServicer_to_server


async def serve_push_endpoint(
    settings: Settings,
    lifecycle: Lifecycle,
    *,
    connections: ConnectionStore,
    clock: Clock,
    started: Callable[[int], None] = lambda _port: None,
    grpc_started: Callable[[int], None] = lambda _port: None,
) -> None:
    """Serve pushes to users until the lifecycle drains.

    Args:
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
        checks={},
        render_metrics=scrape if settings.telemetry.metrics else None,
    )
    async with open_push(settings, connections, metrics, clock) as handler:
        port = settings.websocket_api.push_port
        app = Starlette(
            routes=[*ops.routes(), *push_routes(handler)], exception_handlers=EXCEPTION_HANDLERS
        )
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


def _grpc_servers(settings: Settings, handler: PushHandler) -> list[GrpcServer]:
    """Bind the gRPC port, if there is to be one."""
    port = settings.websocket_api.push_grpc_port
    if port is None:
        return []
    push = GrpcPush(handler)
    service = GrpcService(
        name=SERVICE_NAME,
        register=lambda server: add_PushServiceServicer_to_server(push, server),
        authenticate=push.authenticate,
    )
    options = GrpcOptions(
        host=settings.api.host,
        port=port,
        setting="websocket_api.push_grpc_port",
        close_seconds=settings.execution.drain_grace,
    )
    return [GrpcServer([service], options)]
