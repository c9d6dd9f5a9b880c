"""`GatewayService`: client sockets over gRPC, by the same reception as over WebSocket.

Frames are the same JSON objects, carried as `google.protobuf.Struct`.  A connection that the
gateway ends has a status where a WebSocket has a close code.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextvars import ContextVar
from typing import Any

import grpc.aio
from typing_extensions import override

from turnline.auth import bearer_token
from turnline.errors import (
    DrainingError,
    InternalError,
    InvalidRequestError,
    PayloadTooLargeError,
    StoreUnavailableError,
    TurnlineError,
    UnauthenticatedError,
)
from turnline.gateway.frames import failed
from turnline.gateway.hub import SERVICE_RESTART
from turnline.gateway.reception import TOKEN_EXPIRED, TRY_AGAIN_LATER, Guest, Left, Said
from turnline.gateway.sockets import SLOW_CONSUMER
from turnline.gateway.wiring import GrpcDesk
from turnline.hosting.grpc_errors import abort
from turnline.hosting.grpc_server import GrpcService
from turnline.protocol.json_struct import read_struct, write_struct
from turnline.push import Frame
from turnline.v1 import gateway_service_pb2 as pb
from turnline.v1.gateway_service_pb2_grpc import (
    GatewayServiceServicer,
    add_GatewayServiceServicer_to_server,
)

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["GatewayService"].full_name

_NORMAL = 1000
_TOO_LARGE = 1009

Requests = AsyncIterator[pb.ConnectRequest]
Context = grpc.aio.ServicerContext[Any, Any]

_GUEST: ContextVar[Guest] = ContextVar("turnline_grpc_guest")


def make_service(desk: GrpcDesk) -> GrpcService:
    """Make what a gRPC server serves; `open_grpc` calls it by this name."""
    gateway = GrpcGateway(desk)
    return GrpcService(
        name=SERVICE_NAME,
        register=lambda server: add_GatewayServiceServicer_to_server(gateway, server),
        authenticate=gateway.authenticate,
    )


class GrpcGateway(GatewayServiceServicer):
    """Answers `GatewayService`."""

    def __init__(self, desk: GrpcDesk) -> None:
        self._reception = desk.reception
        self._max_frame_bytes = desk.max_frame_bytes

    async def authenticate(self, _method: str, metadata: Mapping[str, str | bytes]) -> None:
        """Learn whose connection it is.

        Raises:
            TurnlineError: it may not stay; see `Reception.welcome`.
        """
        token = metadata.get("authorization", "")
        bearer = bearer_token(token if isinstance(token, str) else "")
        _GUEST.set(await self._reception.welcome(bearer))

    @override
    async def Connect(self, requests: Requests, context: Context) -> None:
        """Hold a connection until either side ends it.

        Raises:
            TurnlineError: why the gateway ended it.
        """
        # Now, not with the first frame: so that a client learns that it is connected.
        await context.send_initial_metadata(())
        client = GrpcSocket(requests, context, max_frame_bytes=self._max_frame_bytes)
        await self._reception.hold(client, _GUEST.get())
        ended = client.ended
        if ended is None or ended.code == _NORMAL:
            return
        if ended.code == SLOW_CONSUMER:
            await abort(context, grpc.StatusCode.ABORTED, ended.reason)
            return
        raise _error_of(ended, self._max_frame_bytes)


class GrpcSocket:
    """Reads and writes one client's connection; a `Peer`.

    Attributes:
        ended: how it ended; None while it lasts.
    """

    def __init__(self, requests: Requests, context: Context, *, max_frame_bytes: int) -> None:
        self.ended: Left | None = None
        self._requests = requests
        self._context = context
        self._max_frame_bytes = max_frame_bytes
        self._reading: asyncio.Timeout | None = None

    async def hear(self) -> Said:
        """See `Peer`."""
        if self.ended is not None:
            return self.ended
        try:
            async with asyncio.timeout(None) as self._reading:
                message = await anext(self._requests, None)
        except TimeoutError:
            # Only `close` gives it a time.
            message = None
        finally:
            self._reading = None
        if message is not None:
            return self._read(message)
        self.ended = self.ended or Left(_NORMAL)
        return self.ended

    async def send(self, frame: Frame) -> None:
        """See `Peer`."""
        if self.ended is not None:
            raise ConnectionResetError("the connection was closed")
        try:
            await self._context.write(_response(frame))
        except grpc.aio.BaseError as error:
            raise ConnectionResetError("the client has left") from error

    async def close(self, code: int, reason: str) -> None:
        """See `Peer`."""
        if self.ended is None:
            self.ended = Left(code, reason)
        if self._reading is not None:
            self._reading.reschedule(asyncio.get_running_loop().time())

    def _read(self, message: pb.ConnectRequest) -> Said:
        if message.ByteSize() > self._max_frame_bytes:
            self.ended = Left(_TOO_LARGE, f"frame over {self._max_frame_bytes} bytes")
            return self.ended
        try:
            return read_struct(message.frame, field="frame")
        except InvalidRequestError as error:
            return error


def _response(frame: Frame) -> pb.ConnectResponse:
    response = pb.ConnectResponse()
    try:
        write_struct(frame, response.frame, field="frame")
    except InvalidRequestError:
        # An application's own: what is Turnline's has been through Protobuf before.
        response.Clear()
        error = InternalError("A frame for this client holds what gRPC does not carry")
        write_struct(failed(error), response.frame, field="frame")
    return response


def _error_of(ended: Left, max_frame_bytes: int) -> TurnlineError:
    if ended.code == SERVICE_RESTART:
        return DrainingError(ended.reason)
    if ended.code == TOKEN_EXPIRED:
        return UnauthenticatedError(ended.reason)
    if ended.code == TRY_AGAIN_LATER:
        return StoreUnavailableError(ended.reason, retry_after=1.0)
    return PayloadTooLargeError(ended.reason, limit_bytes=max_frame_bytes, field="frame")
