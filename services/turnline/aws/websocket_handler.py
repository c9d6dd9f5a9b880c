"""The WebSocket connection handler as a Lambda function: all routes of a WebSocket API.

Without queues it runs agents itself (`direct_lambda`).
"""

import os
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
from turnline.aws.gateway_push import open_gateway_routes
from turnline.aws.inbox import APART_SECONDS, Inbox, SelfCall, asked_for, open_self_call
from turnline.aws.socket_wiring import inbox_of, socket_desk
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
from turnline.store import Connection
from turnline.telemetry import get_logger

_log = get_logger("aws")


Message = Callable[[SocketEvent, str, float], Awaitable[Frame | None]]


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
    async with (
        open_gateway_routes(settings) as ways,
        # Lambda says there which function this is; it is no setting.
        open_self_call(
            os.environ if settings.websocket_api.inbox else {}  # noqa: TID251 - see above
        ) as self_call,
    ):
        desk = socket_desk(settings, backends, ways, validator=validator)
        door = _Door(
            desk,
            inbox=inbox_of(settings, backends, ways),
            self_call=self_call,
            override=settings.websocket_api.endpoint_url,
        )
        if not is_direct(settings):

            async def enqueue(event: SocketEvent, endpoint: str, _seconds: float) -> Frame | None:
                return await desk.message(
                    event.connection_id, event.text, endpoint=endpoint, user_id=event.user_id
                )

            yield door.invocation(enqueue)
            return
        async with open_direct(
            settings, backends, ways, agents=default_registry, validator=validator
        ) as frames:

            async def run(event: SocketEvent, endpoint: str, seconds: float) -> Frame | None:
                return await frames.message(event, endpoint=endpoint, seconds=seconds)

            yield door.invocation(run)


class _Door:
    """Handles events: who comes, what they say, who leaves, and who may have what is held."""

    def __init__(
        self, desk: SocketDesk, *, inbox: Inbox | None, self_call: SelfCall, override: str | None
    ) -> None:
        self._desk = desk
        self._inbox = inbox
        self._override = override
        self._self_call = self_call

    def invocation(self, message: Message) -> Invocation:
        """Give what handles an event, with frames handled by `message`."""

        async def invoke(event: Event, seconds: float) -> Event:
            if (awaiting := asked_for(event)) is not None:
                await self._give(awaiting, seconds)
                return {"statusCode": 200}
            asked = read_socket_event(event)
            if asked.kind == CONNECT:
                return await self._connect(asked)
            if asked.kind == DISCONNECT:
                await self._desk.disconnect(asked.connection_id)
                return {"statusCode": 200}
            frame = await message(asked, self._endpoint(asked), seconds)
            if frame is None:
                return {"statusCode": 200}
            return {"statusCode": 200, "body": orjson.dumps(frame).decode()}

        return invoke

    async def _give(self, awaiting: Connection, seconds: float) -> None:
        """Give a socket what is held for it; raises what makes Lambda call once more."""
        if self._inbox is None or not await self._desk.knows(awaiting.connection_id):
            return
        await self._inbox.give_apart(awaiting, seconds=min(APART_SECONDS, 0.7 * seconds))

    def _endpoint(self, event: SocketEvent) -> str:
        return self._override or event.endpoint

    async def _connect(self, event: SocketEvent) -> Event:
        endpoint = self._endpoint(event)
        try:
            user_id = await self._desk.connect(
                event.connection_id, endpoint=endpoint, token=event.token, user_id=event.user_id
            )
        except UnauthenticatedError as error:
            _log.info("connection.refused", code=401, reason=error.message)
            return {"statusCode": 401, "body": error.message}
        except StoreUnavailableError as error:
            _log.warning("connection.refused", code=503, reason=error.message)
            return {"statusCode": 503, "body": error.message}
        if self._inbox is not None and await self._inbox.holds_for(user_id):
            awaiting = Connection(
                user_id=user_id, connection_id=event.connection_id, endpoint=endpoint
            )
            await self._self_call.ask(awaiting)
            # That took its time, in which a push finds the socket gone and forgets it.
            await self._inbox.note(awaiting)
        answer: Event = {"statusCode": 200}
        if event.subprotocol is not None:
            # A browser closes a socket that takes none of what it offered.
            answer["headers"] = {PROTOCOL_HEADER: event.subprotocol}
        return answer
