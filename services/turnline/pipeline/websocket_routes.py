"""Custom WebSocket routes, with the guide's decorator."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import ClassVar

from turnline.gateway.custom import RouteHandler
from turnline.gateway.handler import RESERVED_ROUTES


class PipelineWebSocketHandler:
    """Registers routes that bypass the queue and are answered by the gateway itself.

        @PipelineWebSocketHandler.register("status")
        def status(msg):                # {"message": <the frame>, "user_id": ...}
            return {"up": True}         # sent back as a SYSTEM_RESPONSE frame

    A handler may be sync (it runs in a thread) or async; None sends nothing back.
    """

    _routes: ClassVar[dict[str, RouteHandler]] = {}

    @classmethod
    def register(cls, route: str) -> Callable[[RouteHandler], RouteHandler]:
        """Register a handler for frames whose `route` is this.

        Raises:
            ValueError: the name is taken, or one of Turnline's own (`cancel`, `resume`).
        """
        if route in RESERVED_ROUTES:
            raise ValueError(f"the WebSocket route {route!r} is Turnline's own; choose another")
        if route in cls._routes:
            raise ValueError(f"the WebSocket route {route!r} is registered already")

        def keep(handler: RouteHandler) -> RouteHandler:
            cls._routes[route] = handler
            return handler

        return keep

    @classmethod
    def routes(cls) -> Mapping[str, RouteHandler]:
        """The registered handlers by route."""
        return MappingProxyType(cls._routes)
