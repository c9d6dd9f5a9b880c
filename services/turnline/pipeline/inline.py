"""Explicit handlers, run inline: the user's routes and the operator's, and no queue."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.routing import BaseRoute, Mount

from turnline.config import Settings
from turnline.hosting import Lifecycle, Ops, Parts, WebOptions, WebServer, run_parts


async def serve_inline(
    settings: Settings, lifecycle: Lifecycle, routes: Sequence[BaseRoute]
) -> None:
    """Serve `routes` below `api.custom_router_prefix` until the lifecycle drains."""
    ops = Ops(lifecycle=lifecycle, alive={}, checks={}, render_metrics=None)
    custom = Mount(settings.api.custom_router_prefix, routes=list(routes))
    app = Starlette(routes=[*ops.routes(), custom])
    web = WebServer(app, WebOptions(host=settings.api.host, port=settings.api.port))
    await run_parts(Parts(web=web), lifecycle, grace=settings.execution.drain_grace)
