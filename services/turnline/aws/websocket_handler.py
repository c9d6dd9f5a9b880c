"""The WebSocket connection handler as a Lambda function: all routes of a WebSocket API."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import ClassVar

import orjson

from turnline.auth import AuthValidator
from turnline.aws import custom_routes
from turnline.aws.checks import read_settings_for, validator_of
from turnline.aws.custom_routes import HandlerT
from turnline.aws.environment import AtInit, Event, Invocation
from turnline.aws.socket_wiring import socket_desk
from turnline.aws.sockets import SocketDesk
from turnline.aws.websocket_events import (
    CONNECT,
    DISCONNECT,
    PROTOCOL_HEADER,
    SocketEvent,
    read_socket_event,
)
from turnline.config import Topology
from turnline.errors import StoreUnavailableError, UnauthenticatedError
from turnline.hosting import open_backends
from turnline.protocol.clock import SystemClock
from turnline.telemetry import get_logger

_log = get_logger("aws")


class WebsocketConnectionHandler:
    """Lets clients in, takes their frames, and forgets them when they leave.

    The frame that answers a frame is the function's answer: the routes of the API need a route
    response for it to reach the client.

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
        settings, validator = read_settings_for(Topology.GATEWAY, validator_of(cls._validator))
        async with open_backends(settings, SystemClock(), part=Topology.GATEWAY) as backends:
            desk = socket_desk(settings, backends, validator=validator)
            override = settings.websocket_api.endpoint_url

            async def invoke(event: Event, _seconds: float) -> Event:
                return await _handle(desk, read_socket_event(event), override)

            yield invoke


async def _handle(desk: SocketDesk, event: SocketEvent, endpoint: str | None) -> Event:
    if event.kind == CONNECT:
        return await _connect(desk, event, endpoint or event.endpoint)
    if event.kind == DISCONNECT:
        await desk.disconnect(event.connection_id)
        return {"statusCode": 200}
    frame = await desk.message(event.connection_id, event.text, user_id=event.user_id)
    if frame is None:
        return {"statusCode": 200}
    return {"statusCode": 200, "body": orjson.dumps(frame).decode()}


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
