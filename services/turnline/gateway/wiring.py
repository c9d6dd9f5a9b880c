"""Puts a gateway together: the hub of sockets and the endpoint that serves them."""

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from turnline.auth import AuthValidator
from turnline.config import Settings
from turnline.frontdoor import Admission
from turnline.gateway.custom import CustomRoutes, RouteHandler
from turnline.gateway.following import Follower, FollowOptions
from turnline.gateway.handler import FrameHandler, gateway_options
from turnline.gateway.hub import Hub
from turnline.gateway.reception import Reception, SocketParts
from turnline.gateway.routes import SocketEndpoint
from turnline.gateway.signals import GatewaySignals
from turnline.hosting import Backends

GRPC_SERVICE = "turnline.gateway.grpc_service"
"""Module of the service over gRPC, by name, so that a process without gRPC need not load it."""

ROUTE_SECONDS = 30.0
IDLE_SECONDS = 600.0
# Also how long users stay unreachable after the store lost its mappings.
REFRESH_SECONDS = 60.0
# How long an asker may wait for an end that was pushed while its pod could not be reached; each
# waiting turn costs the response store a read as often.
CATCH_UP_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcDesk:
    """What connections over gRPC are served with; see `turnline.gateway.grpc_service`.

    Attributes:
        max_frame_bytes: a client whose frame is larger is let go.
    """

    reception: Reception
    max_frame_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gateway:
    """The two parts of a gateway; `refresh` runs in the background.

    Attributes:
        endpoint: serves WebSockets.
        grpc_desk: what connections over gRPC are served with, where that is asked for.
        refresh_seconds: how often the mappings of held sockets are renewed.
    """

    hub: Hub
    endpoint: SocketEndpoint
    grpc_desk: GrpcDesk
    follower: Follower
    refresh_seconds: float

    async def refresh(self) -> None:
        """Keep the mappings of held sockets alive, and bring what they missed, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.hub.refresh(self.refresh_seconds))
            tasks.create_task(self.hub.visit_all(CATCH_UP_SECONDS, self.follower.catch_up))


def open_hub(settings: Settings, backends: Backends, *, endpoint: str) -> Hub:
    """Make the hub; `endpoint` is this pod's push address, or `local` in a single process."""
    return Hub(
        connections=backends.stores.connections,
        endpoint=endpoint,
        max_per_user=settings.websocket_api.max_connections_per_user,
        pause=lambda: random.uniform(0.5, 5.0),
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
    signals = GatewaySignals(backends.metrics, backends.tracing, backends.clock)
    follower = Follower(
        replies=backends.stores.replies,
        signals=signals,
        options=FollowOptions(idle=IDLE_SECONDS, wait=settings.execution.turn_timeout),
    )

    def reception(signals: GatewaySignals) -> Reception:
        parts = SocketParts(
            hub=hub,
            handler=_frame_handler(settings, backends, admission, routes, follower, signals),
            validator=validator,
            clock=backends.clock,
            signals=signals,
            accepting=accepting,
            send_buffer=settings.websocket_api.send_buffer,
        )
        return Reception(parts)

    over_grpc = GatewaySignals(backends.metrics, backends.tracing, backends.clock, surface="grpc")
    return Gateway(
        hub=hub,
        endpoint=SocketEndpoint(reception(signals)),
        grpc_desk=GrpcDesk(
            reception=reception(over_grpc),
            max_frame_bytes=settings.websocket_api.max_frame_bytes,
        ),
        follower=follower,
        refresh_seconds=min(REFRESH_SECONDS, settings.session.connection_store.ttl / 3),
    )


def _frame_handler(
    settings: Settings,
    backends: Backends,
    admission: Admission,
    routes: Mapping[str, RouteHandler],
    follower: Follower,
    signals: GatewaySignals,
) -> FrameHandler:
    return FrameHandler(
        admission=admission,
        replies=backends.stores.replies,
        follower=follower,
        routes=CustomRoutes(routes, timeout=ROUTE_SECONDS),
        signals=signals,
        options=gateway_options(settings),
    )
