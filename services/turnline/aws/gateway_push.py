"""Pushes over API Gateway's `PostToConnection`, for sockets that API Gateway holds.

What it refuses for now is tried again for a moment; if that does not help, the whole piece of the
answer is delivered again, so that no socket misses any of it.  Frames name their place in the
answer, so a socket that had it already drops the repetition.

A socket that is still connecting looks gone, and is noted by then: what is gone is tried again too.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import orjson

from turnline.aws.frame_parts import parts_of
from turnline.awssdk import AwsError, AwsOptions, call, open_client
from turnline.config import Settings
from turnline.errors import TransportUnavailableError
from turnline.hosting import Backends, Backoff
from turnline.push import ConnectionPush, Frame, PushSignals, UserPush

if TYPE_CHECKING:
    from types_aiobotocore_apigatewaymanagementapi.client import (
        ApiGatewayManagementApiClient,  # pants: no-infer-dep
    )

_TRIES = 4
_CALL_SECONDS = 3.0
# For all tries on one connection; above them, so that they come to their own end.
_PUSH_SECONDS = 30.0
_BACKOFF = Backoff(base=0.1, cap=1.0)
_GONE = "GoneException"
# From the note of a socket to the end of its handshake: the rest of the call for `$connect`.
_CONNECTING_PAUSES = (0.2, 0.6)

_UNREACHED: ContextVar[list[str]] = ContextVar("_UNREACHED")


class GatewayPush:
    """Way to the sockets of one WebSocket API."""

    def __init__(self, endpoint: str, clients: "GatewayClients") -> None:
        self._endpoint = endpoint
        self._clients = clients

    async def push(self, connection_id: str, frames: Sequence[Frame]) -> bool:
        """Send frames in order, each in a call of its own; False when the socket is gone.

        Raises:
            TransportUnavailableError: API Gateway did not take one of them.
        """
        client = await self._clients.to(self._endpoint)
        pauses: Sequence[float] = _CONNECTING_PAUSES
        for frame in frames:
            for part in parts_of(frame):
                try:
                    await _post(client, connection_id, orjson.dumps(part), if_gone=pauses)
                    pauses = ()
                except AwsError as error:
                    if error.code == _GONE:
                        return False
                    _UNREACHED.get([]).append(connection_id)
                    raise TransportUnavailableError(
                        f"API Gateway did not take a frame ({error.code})"
                    ) from error
        return True


class GatewayClients:
    """Clients of API Gateway by endpoint, opened when first used and closed together."""

    def __init__(self, options: AwsOptions, parts: AsyncExitStack) -> None:
        """Wire it; `options` names the endpoint of all sockets, or None: each socket its own."""
        self._options = options
        self._parts = parts
        self._clients: dict[str, ApiGatewayManagementApiClient] = {}
        self._opening = asyncio.Lock()

    async def to(self, endpoint: str) -> "ApiGatewayManagementApiClient":
        """Give the client of an endpoint."""
        url = self._options.endpoint_url or endpoint
        async with self._opening:
            client = self._clients.get(url)
            if client is None:
                options = AwsOptions(
                    region=self._options.region,
                    endpoint_url=url,
                    request_seconds=_CALL_SECONDS,
                )
                client = await self._parts.enter_async_context(
                    open_client("apigatewaymanagementapi", options)
                )
                self._clients[url] = client
            return client


class GatewayRoutes:
    """Finds the way to a WebSocket API by the endpoint that was recorded with a socket."""

    def __init__(self, clients: GatewayClients) -> None:
        self._clients = clients

    def to(self, endpoint: str) -> ConnectionPush:
        """See `PushRoutes.to`."""
        return GatewayPush(endpoint, self._clients)


class GatewayUserPush(UserPush):
    """Delivers frames to every live socket of a user, or says that one was not reached."""

    async def push(self, user_id: str, frames: Sequence[Frame]) -> int:
        """As `UserPush.push`; the user's other sockets get the frames in any case.

        Raises:
            StoreUnavailableError: the connections could not be looked up; nothing was sent.
            TransportUnavailableError: a socket that is there was not reached.
        """
        unreached: list[str] = []
        token = _UNREACHED.set(unreached)
        try:
            reached = await super().push(user_id, frames)
        finally:
            _UNREACHED.reset(token)
        if unreached:
            raise TransportUnavailableError(
                f"API Gateway took no frames for {len(unreached)} of the user's sockets"
            )
        return reached

    async def push_or_hold(self, user_id: str, frames: Sequence[Frame]) -> int:
        """As `UserPush.push_or_hold`; nothing is held for a user who has a socket.

        Raises:
            StoreUnavailableError: some frames may have been sent or kept; try again.
            TransportUnavailableError: a socket that is there was not reached.
        """
        if reached := await self.push(user_id, frames):
            return reached
        return await super().push_or_hold(user_id, frames)


@asynccontextmanager
async def open_gateway_push(settings: Settings, backends: Backends) -> AsyncIterator[UserPush]:
    """Open the way to client sockets; a client is made when the first frame goes out."""
    async with open_gateway_routes(settings) as routes:
        yield gateway_user_push(routes, backends)


@asynccontextmanager
async def open_gateway_routes(settings: Settings) -> AsyncIterator[GatewayRoutes]:
    """As `open_gateway_push`, for single sockets."""
    sockets = settings.websocket_api
    options = AwsOptions(
        region=settings.execution.queues.sqs.region, endpoint_url=sockets.endpoint_url
    )
    async with AsyncExitStack() as parts:
        yield GatewayRoutes(GatewayClients(options, parts))


def gateway_user_push(routes: GatewayRoutes, backends: Backends) -> UserPush:
    """Make what delivers to all sockets of a user."""
    return GatewayUserPush(
        connections=backends.stores.connections,
        routes=routes,
        signals=PushSignals(backends.metrics),
        clock=backends.clock,
        timeout=_PUSH_SECONDS,
        # One refusal says nothing of the other sockets behind the same endpoint.
        rest=0.0,
    )


async def _post(
    client: Any,  # noqa: ANN401 - see `to`
    connection_id: str,
    data: bytes,
    *,
    if_gone: Sequence[float],
) -> None:
    """Send one frame, again where that may help.

    Args:
        if_gone: seconds to wait before each further try on a socket that looks gone.
    """
    failures = 0
    connecting = iter(if_gone)
    while True:
        try:
            await call(
                client.post_to_connection(ConnectionId=connection_id, Data=data),
                seconds=_CALL_SECONDS,
            )
            return
        except AwsError as error:
            if error.code == _GONE and (pause := next(connecting, None)) is not None:
                await asyncio.sleep(pause)
                continue
            failures += 1
            if not error.passes or failures >= _TRIES:
                raise
            await asyncio.sleep(_BACKOFF.pause(failures))
