"""Custom routes: the application's own handlers, called at once and past the queue (guide).

A handler may be sync, and then runs in one of a few threads of its own, or async.  Whatever it
does, its caller gets an answer within the time a route may take.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import orjson

from turnline.agent import BoundedThreads
from turnline.errors import InternalError, NotFoundError
from turnline.telemetry import get_logger

_log = get_logger("gateway")

MAX_ROUTE_THREADS = 16

RouteMessage = dict[str, Any]
RouteReply = Mapping[str, Any] | None
RouteHandler = Callable[[RouteMessage], RouteReply | Awaitable[RouteReply]]


class CustomRoutes:
    """The registered handlers by route."""

    def __init__(self, handlers: Mapping[str, RouteHandler], *, timeout: float) -> None:
        """Wire it; `timeout` is the seconds a handler may take."""
        self._handlers = handlers
        self._timeout = timeout
        self._threads = BoundedThreads(MAX_ROUTE_THREADS)

    async def call(self, route: str, message: RouteMessage) -> RouteReply:
        """Call a handler; None means that it has nothing to say.

        Raises:
            NotFoundError: no such route.
            InternalError: the handler raised, took too long, or gave no JSON object.
        """
        handler = self._handlers.get(route)
        if handler is None:
            raise NotFoundError(f"Route {route[:64]!r} not found", field="route")
        try:
            async with asyncio.timeout(self._timeout):
                return _checked(await self._run(handler, message))
        except Exception as error:
            _log.error("route.failed", route=route[:64], exc_info=error)
            raise InternalError("Route handler encountered an error") from error

    async def _run(self, handler: RouteHandler, message: RouteMessage) -> object:
        if inspect.iscoroutinefunction(handler):
            return await handler(message)
        result: object = None
        async for item in self._threads.iterate(lambda: _once(handler, message)):
            result = item
        return await result if inspect.isawaitable(result) else result


def _once(handler: RouteHandler, message: RouteMessage) -> Iterator[object]:
    yield handler(message)


def _checked(reply: object) -> RouteReply:
    if reply is not None and not isinstance(reply, Mapping):
        raise TypeError(f"a route handler gives a dict or None, not {type(reply).__name__}")
    # Raises TypeError for what is not JSON, before it reaches the sender.
    orjson.dumps(reply)
    return reply
