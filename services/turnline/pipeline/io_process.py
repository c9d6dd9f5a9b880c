"""The IO side on a broker: request handler and responder in one process, as in the guide.

Read top to bottom: what is opened first is closed last.
"""

from turnline.auth import AuthValidator
from turnline.frontdoor import admin_routes, web_app
from turnline.hosting import (
    LeaseKeeper,
    Parts,
    Standalone,
    WebServer,
    open_grpc,
    operator_routes,
    run_parts,
    web_options,
)
from turnline.request_handler import WaitingRoom, build_routes
from turnline.request_handler.process import client_parts
from turnline.request_handler.wiring import GRPC_SERVICE
from turnline.responder.process import open_push
from turnline.responder.wiring import responder_loop
from turnline.telemetry import watch_loop_lag


async def serve_io(process: Standalone, *, validator: AuthValidator | None) -> None:
    """Serve REST callers and take answers until the lifecycle drains.

    Args:
        validator: checks bearer tokens; None leaves the routes open.

    Raises:
        ConfigurationError: the port is taken.
    """
    settings, backends = process.settings, process.backends
    async with open_push(process) as push:
        keeper = LeaseKeeper(backends.metrics)
        responder = responder_loop(settings, backends, keeper, push=push)
        waiting = WaitingRoom()
        alive = {"responder": lambda: responder.reading}
        rest = client_parts(process, waiting, validator)
        routes = [
            *build_routes(rest),
            *admin_routes(process.settings, process.backends.transport),
            *operator_routes(settings, backends, process.lifecycle, alive=alive),
        ]
        web = WebServer(web_app(routes), web_options(settings))
        process.started(web.port)
        parts = Parts(
            web=web,
            servers=open_grpc(settings, process.lifecycle, {GRPC_SERVICE: rest}),
            responder=responder,
            background=[keeper.run, lambda: watch_loop_lag(backends.metrics, backends.clock)],
            farewells=[waiting.close],
        )
        await run_parts(parts, process.lifecycle, grace=settings.execution.drain_grace)
