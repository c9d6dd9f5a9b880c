"""Types of the gRPC stubs, for asyncio.  Made by build-support/proto; do not edit."""
from collections.abc import AsyncIterator

import grpc.aio

from turnline.v1 import agent_service_pb2 as pb

class AgentServiceStub:
    def __init__(self, channel: grpc.aio.Channel) -> None: ...
    Run: grpc.aio.UnaryStreamMultiCallable[pb.RunRequest, pb.RunResponse]
    ListAgents: grpc.aio.UnaryUnaryMultiCallable[pb.ListAgentsRequest, pb.ListAgentsResponse]

class AgentServiceServicer:
    def Run(
        self, request: pb.RunRequest, context: grpc.aio.ServicerContext[pb.RunRequest, pb.RunResponse]
    ) -> AsyncIterator[pb.RunResponse]: ...
    async def ListAgents(
        self, request: pb.ListAgentsRequest, context: grpc.aio.ServicerContext[pb.ListAgentsRequest, pb.ListAgentsResponse]
    ) -> pb.ListAgentsResponse: ...

def add_AgentServiceServicer_to_server(
    servicer: AgentServiceServicer, server: grpc.aio.Server
) -> None: ...
