"""The push endpoint as a process of its own: it needs a connection store and no transport.

Read top to bottom: what is opened first is closed last.
"""

from collections.abc import Callable

from starlette.applications import Starlette

from turnline.config import Settings
from turnline.frontdoor import EXCEPTION_HANDLERS
from turnline.hosting import Lifecycle, Ops, Parts, WebServer, run_parts, web_options
from turnline.protocol.clock import Clock
from turnline.push.endpoint_routes import push_routes
from turnline.push_endpoint.wiring import open_push
from turnline.store import ConnectionStore
from turnline.telemetry import Metrics, watch_loop_lag


async def serve_push_endpoint(
    settings: Settings,
    lifecycle: Lifecycle,
    *,
    connections: ConnectionStore,
    clock: Clock,
    started: Callable[[int], None] = lambda _port: None,
) -> None:
    """Serve pushes to users until the lifecycle drains.

    Args:
        started: called with the port that is listened on, once it is bound.

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
        started(web.port)
        parts = Parts(web=web, background=[lambda: watch_loop_lag(metrics, clock)])
        await run_parts(parts, lifecycle, grace=settings.execution.drain_grace)
