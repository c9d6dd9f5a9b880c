"""The request handler as a process of its own: routes in front, a broker and shared stores behind.

Read top to bottom: what is opened first is closed last.
"""

from collections.abc import Callable

from starlette.routing import BaseRoute

from turnline.auth import AuthValidator
from turnline.config import Settings, Topology, topology_faults, topology_warnings
from turnline.errors import ConfigurationError
from turnline.frontdoor import Admission
from turnline.hosting import (
    Backends,
    Lifecycle,
    Ops,
    Parts,
    WebOptions,
    WebServer,
    open_backends,
    run_parts,
)
from turnline.protocol.clock import SystemClock
from turnline.request_handler.routes import build_routes, rest_app
from turnline.request_handler.waiting import WaitingRoom
from turnline.request_handler.wiring import open_rest
from turnline.telemetry import QueueSource, get_logger

_log = get_logger("request_handler")


def check_settings(settings: Settings) -> None:
    """Refuse settings this process cannot work with, and warn of what is likely not meant.

    Raises:
        ConfigurationError: names every setting at fault and its fix; with `in_memory` queues
            there is nothing a process of its own could reach.
    """
    faults = topology_faults(settings, topology=Topology.REQUEST_HANDLER)
    if faults:
        raise ConfigurationError(faults)
    for warning in topology_warnings(settings, topology=Topology.REQUEST_HANDLER):
        _log.warning("config.warning", setting=warning.setting, reason=warning.reason)


async def serve_request_handler(
    settings: Settings,
    lifecycle: Lifecycle,
    *,
    validator: AuthValidator | None = None,
    started: Callable[[int], None] = lambda _port: None,
) -> None:
    """Serve until the lifecycle drains, then let running requests end within the grace period.

    Args:
        validator: checks bearer tokens; None leaves the routes open.
        started: called with the port once it is bound.

    Raises:
        ConfigurationError: the port is taken, an adapter is missing, or what the broker should
            hold is not there.
    """
    async with open_backends(settings, SystemClock()) as backends:
        waiting = WaitingRoom()
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
        routes = [*build_routes(rest), *_operator_routes(settings, backends, lifecycle)]
        options = WebOptions(host=settings.api.host, port=settings.api.port)
        web = WebServer(rest_app(routes), options)
        started(web.port)
        parts = Parts(web=web, farewells=[waiting.close])
        await run_parts(parts, lifecycle, grace=settings.execution.drain_grace)


def _operator_routes(
    settings: Settings, backends: Backends, lifecycle: Lifecycle
) -> list[BaseRoute]:
    transport = backends.transport
    queues = [
        QueueSource(queue="input", stats=transport.input.stats),
        QueueSource(queue="output", stats=transport.output.stats),
    ]
    shown = settings.telemetry.metrics
    ops = Ops(
        lifecycle=lifecycle,
        alive={},
        checks={"transport": transport.check},
        render_metrics=(lambda: backends.metrics.scrape(queues)) if shown else None,
    )
    return [*ops.routes()]
