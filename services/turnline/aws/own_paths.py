"""The application's own REST paths, in whichever process of AWS they are answered.

A handler is called as Lambda calls a function, with an event of an HTTP API (format 2.0), so that
one registration serves on Lambda and in containers.  Past the queue, and whoever calls was checked
by API Gateway alone.
"""

import base64
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from turnline.aws.bodies import body_within
from turnline.aws.environment import Event
from turnline.errors import TurnlineError
from turnline.frontdoor import error_response, json_response
from turnline.gateway.custom import CustomRoutes

# Below the 30 s that API Gateway waits for an integration.
_SECONDS = 28.0

_ANY = "ANY"
_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")

CustomHandler = Callable[[Event, Any], Any]
HandlerT = TypeVar("HandlerT", bound=CustomHandler)

_handlers: dict[str, CustomHandler] = {}


def register(path: str, method: str = "GET") -> Callable[[HandlerT], HandlerT]:
    """Answer a path of the application's own; the handler gives a dict, sent as JSON.

    It is called with the event and None; sync handlers run in threads.
    """

    def keep(handler: HandlerT) -> HandlerT:
        _handlers[route_of(method, path)] = handler
        return handler

    return keep


def route_of(method: str, path: str) -> str:
    """Name a route as API Gateway does: `GET /app`."""
    return f"{method.upper()} /{path.strip('/')}"


class OwnPaths:
    """The paths that are registered by now."""

    def __init__(self) -> None:
        self._routes = CustomRoutes(
            {route: _called(handler) for route, handler in _handlers.items()}, timeout=_SECONDS
        )
        self._names = tuple(_handlers)

    def __contains__(self, route: str) -> bool:
        return route in self._names

    async def answer(self, route: str, event: Event) -> Response:
        """Call the handler of a route."""
        try:
            reply = await self._routes.call(route, {"event": event})
            return json_response(200, dict(reply or {}))
        except TurnlineError as error:
            return error_response(error)

    def web_routes(self, *, max_bytes: int) -> list[BaseRoute]:
        """Give them as routes of a web server, bodies up to so many bytes."""
        routes: list[BaseRoute] = []
        for name in sorted(self._names, key=_vagueness):
            method, _, path = name.partition(" ")
            methods = _METHODS if method == _ANY else [method]
            # What API Gateway calls `{rest+}`.
            path = path.replace("+}", ":path}")
            routes.append(Route(path, self._endpoint(name, max_bytes), methods=methods))
        return routes

    def _endpoint(self, name: str, max_bytes: int) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            body = await body_within(request, max_bytes)
            return await self.answer(name, event_of(name, request, body))

        return answer


def _vagueness(route: str) -> tuple[bool, bool]:
    """Order routes as API Gateway chooses: `{rest+}` and ANY only where nothing nearer fits."""
    return "+}" in route, route.startswith(f"{_ANY} ")


def event_of(route: str, request: Request, body: bytes) -> Event:
    """Give a request as an HTTP API tells a function of it; no authorizer's finding is known."""
    host = request.client.host if request.client is not None else ""
    return {
        "version": "2.0",
        "routeKey": route,
        "rawPath": request.url.path,
        "rawQueryString": request.url.query,
        "headers": _joined(request.headers.items()),
        "queryStringParameters": _joined(request.query_params.multi_items()),
        "pathParameters": dict(request.path_params),
        "requestContext": {
            "stage": "$default",
            "http": {
                "method": request.method,
                "path": request.url.path,
                "protocol": "HTTP/1.1",
                "sourceIp": host,
            },
        },
        **_body(body),
    }


def _body(body: bytes) -> Event:
    try:
        return {"body": body.decode() or None, "isBase64Encoded": False}
    except UnicodeDecodeError:
        return {"body": base64.b64encode(body).decode(), "isBase64Encoded": True}


def _joined(pairs: Any) -> Mapping[str, str]:  # noqa: ANN401 - Starlette's views
    """Give the values of each name, with commas between, as format 2.0 has them."""
    values: dict[str, str] = {}
    for name, value in pairs:
        values[name] = f"{values[name]},{value}" if name in values else value
    return values


def _called(handler: CustomHandler) -> Callable[[dict[str, Any]], Any]:
    return lambda message: handler(message["event"], None)
