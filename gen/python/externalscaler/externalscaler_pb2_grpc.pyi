"""Types of the gRPC stubs, for asyncio.  Made by build-support/proto; do not edit."""
from collections.abc import AsyncIterator

import grpc.aio

from externalscaler import externalscaler_pb2 as pb

class ExternalScalerStub:
    def __init__(self, channel: grpc.aio.Channel) -> None: ...
    IsActive: grpc.aio.UnaryUnaryMultiCallable[pb.ScaledObjectRef, pb.IsActiveResponse]
    StreamIsActive: grpc.aio.UnaryStreamMultiCallable[pb.ScaledObjectRef, pb.IsActiveResponse]
    GetMetricSpec: grpc.aio.UnaryUnaryMultiCallable[pb.ScaledObjectRef, pb.GetMetricSpecResponse]
    GetMetrics: grpc.aio.UnaryUnaryMultiCallable[pb.GetMetricsRequest, pb.GetMetricsResponse]

class ExternalScalerServicer:
    async def IsActive(
        self, request: pb.ScaledObjectRef, context: grpc.aio.ServicerContext[pb.ScaledObjectRef, pb.IsActiveResponse]
    ) -> pb.IsActiveResponse: ...
    def StreamIsActive(
        self, request: pb.ScaledObjectRef, context: grpc.aio.ServicerContext[pb.ScaledObjectRef, pb.IsActiveResponse]
    ) -> AsyncIterator[pb.IsActiveResponse]: ...
    async def GetMetricSpec(
        self, request: pb.ScaledObjectRef, context: grpc.aio.ServicerContext[pb.ScaledObjectRef, pb.GetMetricSpecResponse]
    ) -> pb.GetMetricSpecResponse: ...
    async def GetMetrics(
        self, request: pb.GetMetricsRequest, context: grpc.aio.ServicerContext[pb.GetMetricsRequest, pb.GetMetricsResponse]
    ) -> pb.GetMetricsResponse: ...

def add_ExternalScalerServicer_to_server(
    servicer: ExternalScalerServicer, server: grpc.aio.Server
) -> None: ...
