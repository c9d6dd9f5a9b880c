"""Puts the desk of client sockets together from settings and open connections."""

from collections.abc import Callable

from turnline.agent import AgentRegistry
from turnline.auth import AuthValidator
from turnline.aws.custom_routes import registered
from turnline.aws.inbox import Inbox
from turnline.aws.sockets import SocketDesk
from turnline.config import Settings
from turnline.frontdoor import Admission
from turnline.gateway.custom import CustomRoutes
from turnline.gateway.handler import gateway_options
from turnline.hosting import Backends
from turnline.push import PushRoutes, PushSignals

# Below the 29 s that API Gateway waits for an integration.
ROUTE_SECONDS = 27.0


def socket_desk(
    settings: Settings,
    backends: Backends,
    ways: PushRoutes,
    *,
    validator: AuthValidator | None,
    accepting: Callable[[], bool] = lambda: True,
    agents: AgentRegistry | None = None,
) -> SocketDesk:
    """Make the desk.

    Args:
        ways: to API Gateway's sockets.
        agents: those of this process, if it runs them; None: a runner elsewhere knows them.
    """
    return SocketDesk(
        connections=backends.stores.connections,
        replies=backends.stores.replies,
        admission=Admission(
            queue=backends.transport.input,
            replies=backends.stores.replies,
            sessions=backends.stores.sessions,
            clock=backends.clock,
            accepting=accepting,
            knows_agent=None if agents is None else agents.knows,
        ),
        routes=CustomRoutes(registered(), timeout=ROUTE_SECONDS),
        validator=validator,
        options=gateway_options(settings),
        inbox=inbox_of(settings, backends, ways),
    )


def inbox_of(settings: Settings, backends: Backends, ways: PushRoutes) -> Inbox | None:
    """Make what brings held frames to sockets; None where none are held."""
    if not settings.websocket_api.inbox:
        return None
    return Inbox(
        connections=backends.stores.connections,
        routes=ways,
        signals=PushSignals(backends.metrics),
    )
