"""The application's own WebSocket routes, in whichever process of AWS they are answered (guide)."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from turnline.gateway.custom import RouteHandler
from turnline.gateway.handler import RESERVED_ROUTES

_handlers: dict[str, RouteHandler] = {}

HandlerT = TypeVar("HandlerT", bound=RouteHandler)


def register(route: str) -> Callable[[HandlerT], HandlerT]:
    """Answer a route, at once and past the queue.

    The handler, sync or async, is called with `{"message": <raw frame>, "user_id": ...}`; a dict
    that it returns is sent back as SYSTEM_RESPONSE, None sends nothing.

    Raises:
        ValueError: the name is taken, or one of the product's own (`cancel`, `resume`).
    """
    if route in RESERVED_ROUTES:
        raise ValueError(f"the WebSocket route {route!r} is the product's own; choose another")
    if route in _handlers:
        raise ValueError(f"the WebSocket route {route!r} is registered already")

    def keep(handler: HandlerT) -> HandlerT:
        _handlers[route] = handler
        return handler

    return keep


def registered() -> Mapping[str, RouteHandler]:
    """Give all routes, as registered by now."""
    return MappingProxyType(_handlers)
