"""Puts a gateway together: the hub of sockets and the endpoint that serves them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from turnline.auth import AuthValidator
from turnline.config import Settings
from turnline.frontdoor import Admission
from turnline.gateway.handler import FrameHandler, GatewayOptions, RouteHandler
from turnline.gateway.hub import Hub
from turnline.gateway.routes import SocketEndpoint
from turnline.hosting import Backends


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """The two parts of a gateway; `endpoint.run` and `refresh` run in the background.

    Attributes:
        refresh_seconds: how often the mappings of held sockets are renewed.
    """

    hub: Hub
    endpoint: SocketEndpoint
    refresh_seconds: float

    async def refresh(self) -> None:
        """Keep the mappings of held sockets alive until cancelled."""
        await self.hub.refresh(self.refresh_seconds)


def open_hub(settings: Settings, backends: Backends, *, endpoint: str) -> Hub:
    """Make the hub; `endpoint` is this pod's push address, or `local` in a single process."""
    return Hub(
        connections=backends.stores.connections,
        endpoint=endpoint,
        max_per_user=settings.websocket_api.max_connections_per_user,
    )


def open_gateway(
    settings: Settings,
    backends: Backends,
    *,
    hub: Hub,
    admission: Admission,
    validator: AuthValidator,
    routes: Mapping[str, RouteHandler],
    accepting: Callable[[], bool],
) -> Gateway:
    """Make the gateway over a hub."""
    handler = FrameHandler(
        admission=admission,
        replies=backends.stores.replies,
        routes=routes,
        options=GatewayOptions(
            chat_route=settings.websocket_api.chat_route,
            streams=settings.execution.mode == "stream",
            turn_timeout=settings.execution.turn_timeout,
        ),
    )
    endpoint = SocketEndpoint(
        hub=hub,
        handler=handler,
        validator=validator,
        accepting=accepting,
        send_buffer=settings.websocket_api.send_buffer,
    )
    return Gateway(
        hub=hub,
        endpoint=endpoint,
        refresh_seconds=settings.session.connection_store.ttl / 3,
    )
