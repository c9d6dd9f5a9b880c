"""The WebSocket connection handler as a Lambda function: all routes of a WebSocket API.

Without queues it runs agents itself (`direct_lambda`).
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import ClassVar

import orjson

from turnline.agent import default_registry
from turnline.auth import AuthValidator
from turnline.aws import custom_routes
from turnline.aws.checks import is_direct, part_of, read_settings_for, validator_of
from turnline.aws.custom_routes import HandlerT
from turnline.aws.direct_lambda import open_direct
from turnline.aws.environment import AtInit, Event, Invocation
from turnline.aws.socket_wiring import socket_desk
from turnline.aws.sockets import SocketDesk
from turnline.aws.spans import sending_spans
from turnline.aws.websocket_events import (
    CONNECT,
    DISCONNECT,
    PROTOCOL_HEADER,
    SocketEvent,
    read_socket_event,
)
from turnline.config import Settings, Topology
from turnline.errors import StoreUnavailableError, UnauthenticatedError
from turnline.hosting import Backends, open_backends
from turnline.protocol.clock import SystemClock
from turnline.push import Frame
from turnline.telemetry import get_logger

_log = get_logger("aws")


Message = Callable[[SocketEvent, float], Awaitable[Frame | None]]


class WebsocketConnectionHandler:
    """Lets clients in, takes their frames, and forgets them when they leave.

    The frame that answers a frame is the function's answer: the routes of the API need a route
    response for it to reach the client.  In direct mode register agents before `handler` is read.

    Attributes:
        handler: what Lambda calls.  Reading it opens the queue and the stores.
    """

    handler = AtInit(lambda owner: owner.open)
    _validator: ClassVar[AuthValidator | None] = None

    @classmethod
    def set_auth_validator(cls, validator: AuthValidator) -> "type[WebsocketConnectionHandler]":
        """Check tokens where the API has no authorizer; call it before `handler` is read."""
        cls._validator = validator
        return cls

    @classmethod
    def register(cls, route: str) -> Callable[[HandlerT], HandlerT]:
        """Answer a route of the application's own; see `custom_routes.register`."""
        return custom_routes.register(route)

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator[Invocation]:
        """Open what an environment needs; gives what handles one event.

        Raises:
            ConfigurationError: lists every fault.
        """
        settings, validator = read_settings_for(
            Topology.GATEWAY, validator_of(cls._validator), direct=default_registry
        )
        part = part_of(settings, Topology.GATEWAY)
        async with (
            open_backends(settings, SystemClock(), part=part) as backends,
            _opened(settings, backends, validator) as handle,
        ):
            yield sending_spans(handle, backends.tracing)


@asynccontextmanager
async def _opened(
    settings: Settings, backends: Backends, validator: AuthValidator | None
) -> AsyncIterator[Invocation]:
    """Give what handles an event, with queues or without."""
    desk = socket_desk(settings, backends, validator=validator)
    override = settings.websocket_api.endpoint_url
    if not is_direct(settings):

        async def enqueue(event: SocketEvent, _seconds: float) -> Frame | None:
            return await desk.message(event.connection_id, event.text, user_id=event.user_id)

        yield _invocation(desk, enqueue, override)
        return
    async with open_direct(
        settings, backends, agents=default_registry, validator=validator
    ) as frames:

        async def run(event: SocketEvent, seconds: float) -> Frame | None:
            return await frames.message(event, endpoint=event.endpoint, seconds=seconds)

        yield _invocation(desk, run, override)


def _invocation(desk: SocketDesk, message: Message, override: str | None) -> Invocation:
    async def invoke(event: Event, seconds: float) -> Event:
        asked = read_socket_event(event)
        if asked.kind == CONNECT:
            return await _connect(desk, asked, override or asked.endpoint)
        if asked.kind == DISCONNECT:
            await desk.disconnect(asked.connection_id)
            return {"statusCode": 200}
        frame = await message(asked, seconds)
        if frame is None:
            return {"statusCode": 200}
        return {"statusCode": 200, "body": orjson.dumps(frame).decode()}

    return invoke


async def _connect(desk: SocketDesk, event: SocketEvent, endpoint: str) -> Event:
    try:
        await desk.connect(
            event.connection_id, endpoint=endpoint, token=event.token, user_id=event.user_id
        )
    except UnauthenticatedError as error:
        _log.info("connection.refused", code=401, reason=error.message)
        return {"statusCode": 401, "body": error.message}
    except StoreUnavailableError as error:
        _log.warning("connection.refused", code=503, reason=error.message)
        return {"statusCode": 503, "body": error.message}
    answer: Event = {"statusCode": 200}
    if event.subprotocol is not None:
        # A browser closes a socket that takes none of what it offered.
        answer["headers"] = {PROTOCOL_HEADER: event.subprotocol}
    return answer
