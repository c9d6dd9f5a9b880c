"""Types of the gRPC stubs, for asyncio.  Made by build-support/proto; do not edit."""
from collections.abc import AsyncIterator

import grpc.aio

from turnline.v1 import chat_service_pb2 as pb

class ChatServiceStub:
    def __init__(self, channel: grpc.aio.Channel) -> None: ...
    Chat: grpc.aio.UnaryUnaryMultiCallable[pb.ChatServiceChatRequest, pb.ChatServiceChatResponse]
    Submit: grpc.aio.UnaryUnaryMultiCallable[pb.SubmitRequest, pb.SubmitResponse]
    GetReply: grpc.aio.UnaryUnaryMultiCallable[pb.GetReplyRequest, pb.GetReplyResponse]
    StreamChat: grpc.aio.UnaryStreamMultiCallable[pb.StreamChatRequest, pb.StreamChatResponse]
    Cancel: grpc.aio.UnaryUnaryMultiCallable[pb.CancelRequest, pb.CancelResponse]

class ChatServiceServicer:
    async def Chat(
        self, request: pb.ChatServiceChatRequest, context: grpc.aio.ServicerContext[pb.ChatServiceChatRequest, pb.ChatServiceChatResponse]
    ) -> pb.ChatServiceChatResponse: ...
    async def Submit(
        self, request: pb.SubmitRequest, context: grpc.aio.ServicerContext[pb.SubmitRequest, pb.SubmitResponse]
    ) -> pb.SubmitResponse: ...
    async def GetReply(
        self, request: pb.GetReplyRequest, context: grpc.aio.ServicerContext[pb.GetReplyRequest, pb.GetReplyResponse]
    ) -> pb.GetReplyResponse: ...
    def StreamChat(
        self, request: pb.StreamChatRequest, context: grpc.aio.ServicerContext[pb.StreamChatRequest, pb.StreamChatResponse]
    ) -> AsyncIterator[pb.StreamChatResponse]: ...
    async def Cancel(
        self, request: pb.CancelRequest, context: grpc.aio.ServicerContext[pb.CancelRequest, pb.CancelResponse]
    ) -> pb.CancelResponse: ...

def add_ChatServiceServicer_to_server(
    servicer: ChatServiceServicer, server: grpc.aio.Server
) -> None: ...
