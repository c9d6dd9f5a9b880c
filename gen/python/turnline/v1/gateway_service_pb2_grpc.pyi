"""Types of the gRPC stubs, for asyncio.  Made by build-support/proto; do not edit."""
from collections.abc import AsyncIterator

import grpc.aio

from turnline.v1 import gateway_service_pb2 as pb

class GatewayServiceStub:
    def __init__(self, channel: grpc.aio.Channel) -> None: ...
    Connect: grpc.aio.StreamStreamMultiCallable[pb.ConnectRequest, pb.ConnectResponse]

class GatewayServiceServicer:
    async def Connect(
        self, requests: AsyncIterator[pb.ConnectRequest], context: grpc.aio.ServicerContext[pb.ConnectRequest, pb.ConnectResponse]
    ) -> None: ...

def add_GatewayServiceServicer_to_server(
    servicer: GatewayServiceServicer, server: grpc.aio.Server
) -> None: ...
