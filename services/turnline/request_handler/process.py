"""The request handler as a process of its own: routes in front, a broker and shared stores behind.

Read top to bottom: what is opened first is closed last.
"""

from starlette.routing import BaseRoute

from turnline.auth import AuthValidator
from turnline.frontdoor import Admin, Admission, web_app
from turnline.hosting import (
    Parts,
    Standalone,
    WebServer,
    operator_routes,
    run_parts,
    web_options,
)
from turnline.request_handler.routes import build_routes
from turnline.request_handler.waiting import WaitingRoom
from turnline.request_handler.wiring import open_rest
from turnline.telemetry import watch_loop_lag


async def serve_request_handler(
    process: Standalone, *, validator: AuthValidator | None = None
) -> None:
    """Serve until the lifecycle drains, then let running requests end within the grace period.

    Args:
        validator: checks bearer tokens; None leaves the routes open.

    Raises:
        ConfigurationError: the port is taken.
    """
    settings, backends = process.settings, process.backends
    waiting = WaitingRoom()
    routes = [
        *client_routes(process, waiting, validator),
        *operator_routes(settings, backends, process.lifecycle),
    ]
    web = WebServer(web_app(routes), web_options(settings))
    process.started(web.port)
    parts = Parts(
        web=web,
        background=[lambda: watch_loop_lag(backends.metrics, backends.clock)],
        farewells=[waiting.close],
    )
    await run_parts(parts, process.lifecycle, grace=settings.execution.drain_grace)


def client_routes(
    process: Standalone, waiting: WaitingRoom, validator: AuthValidator | None
) -> list[BaseRoute]:
    """Make the REST routes over a broker, and those for dead letters.

    Args:
        waiting: where callers wait; close it when no further answer will come.
        validator: checks bearer tokens; None leaves the routes open.
    """
    settings, backends, lifecycle = process.settings, process.backends, process.lifecycle
    admission = Admission(
        queue=backends.transport.input,
        replies=backends.stores.replies,
        sessions=backends.stores.sessions,
        clock=backends.clock,
        accepting=lambda: lifecycle.accepting,
    )
    rest = open_rest(
        settings,
        backends,
        admission=admission,
        waiting=waiting,
        validator=validator,
        # Agents live where the runner is.
        agents=list,
    )
    secret = settings.api.admin_token
    admin = Admin(transport=backends.transport, token=secret.get_secret_value() if secret else "")
    return [*build_routes(rest), *admin.routes()]
