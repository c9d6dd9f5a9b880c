"""Types of the gRPC stubs, for asyncio.  Made by build-support/proto; do not edit."""
from collections.abc import AsyncIterator

import grpc.aio

from turnline.v1 import push_service_pb2 as pb

class PushServiceStub:
    def __init__(self, channel: grpc.aio.Channel) -> None: ...
    Push: grpc.aio.UnaryUnaryMultiCallable[pb.PushRequest, pb.PushResponse]

class PushServiceServicer:
    async def Push(
        self, request: pb.PushRequest, context: grpc.aio.ServicerContext[pb.PushRequest, pb.PushResponse]
    ) -> pb.PushResponse: ...

def add_PushServiceServicer_to_server(
    servicer: PushServiceServicer, server: grpc.aio.Server
) -> None: ...
