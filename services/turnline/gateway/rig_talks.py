"""For tests: a client's connection, over WebSocket or over gRPC, in the same words."""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import grpc.aio
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from turnline.protocol.json_struct import read_struct, write_struct
from turnline.push import Frame
from turnline.v1 import gateway_service_pb2 as pb
from turnline.v1.gateway_service_pb2_grpc import GatewayServiceStub

over_both = pytest.mark.parametrize("over", ["websocket", "grpc"])
"""Runs a test over each carrier of connections; it takes the name as `over`."""

Call = grpc.aio.StreamStreamCall[pb.ConnectRequest, pb.ConnectResponse]

_PATIENCE = 10.0


class Conversation(ABC):
    """A client's connection, in frames."""

    @abstractmethod
    async def say(self, **frame: object) -> None:
        """Send a frame."""

    @abstractmethod
    async def hear(self) -> Frame:
        """Read the next frame."""

    @abstractmethod
    async def leave(self) -> None:
        """End the connection."""

    @abstractmethod
    async def told_to_come_back(self) -> bool:
        """Read to the end of the connection; whether it was ended because its server goes."""

    async def hear_until_done(self) -> list[Frame]:
        """Read up to the end of a stream."""
        frames = [await self.hear()]
        while not frames[-1].get("done"):
            frames.append(await self.hear())
        return frames

    async def ask(self, **frame: object) -> Frame:
        """Send a frame and read the next one."""
        await self.say(**frame)
        return await self.hear()


class Talk(Conversation):
    """A client's WebSocket."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def say(self, **frame: object) -> None:
        """See `Conversation`."""
        await self.connection.send(json.dumps(frame))

    async def hear(self) -> Frame:
        """See `Conversation`."""
        async with asyncio.timeout(_PATIENCE):
            frame: Frame = json.loads(await self.connection.recv())
        return frame

    async def leave(self) -> None:
        """See `Conversation`."""
        await self.connection.close()

    async def told_to_come_back(self) -> bool:
        """See `Conversation`."""
        return (await self.close_code())[0] == 1012

    async def close_code(self) -> tuple[int, str]:
        """Read to the end of the connection; give the code and reason it was closed with."""
        try:
            async with asyncio.timeout(_PATIENCE):
                while True:
                    await self.connection.recv()
        except ConnectionClosed as closed:
            frame = closed.rcvd
            return (frame.code, frame.reason) if frame is not None else (1006, "")


class GrpcTalk(Conversation):
    """A client's connection over gRPC."""

    def __init__(self, call: Call) -> None:
        self.call = call

    async def say(self, **frame: object) -> None:
        """See `Conversation`."""
        request = pb.ConnectRequest()
        write_struct(frame, request.frame, field="frame")
        await self.call.write(request)

    async def hear(self) -> Frame:
        """See `Conversation`."""
        async with asyncio.timeout(_PATIENCE):
            response = await self.call.read()
        if isinstance(response, pb.ConnectResponse):
            return read_struct(response.frame, field="frame")
        raise AssertionError("the connection ended")

    async def leave(self) -> None:
        """See `Conversation`."""
        await self.call.done_writing()

    async def told_to_come_back(self) -> bool:
        """See `Conversation`."""
        return (await self.ended())[0] is grpc.StatusCode.UNAVAILABLE

    async def ended(self) -> tuple[grpc.StatusCode, str]:
        """Read to the end of the connection; give the status and text it ended with."""
        async with asyncio.timeout(_PATIENCE):
            with suppress(grpc.aio.AioRpcError):
                while await self.call.read() is not grpc.aio.EOF:
                    pass
            code = await self.call.code()
            return code, await self.call.details()


@asynccontextmanager
async def socket_at(port: int, token: str, *, max_queue: int = 1_000) -> AsyncIterator[Talk]:
    """Open a WebSocket that reads ahead by so many frames."""
    url = f"ws://127.0.0.1:{port}/ws?token={token}"
    async with connect(url, max_queue=max_queue) as connection:
        yield Talk(connection)


@asynccontextmanager
async def call_at(port: int, token: str) -> AsyncIterator[GrpcTalk]:
    """Open a connection over gRPC, on a channel of its own."""
    metadata = (("authorization", f"Bearer {token}"),)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = GatewayServiceStub(channel).Connect(metadata=metadata)
        yield GrpcTalk(call)
        call.cancel()
