"""For this room's tests of gRPC: a real server on a loopback port over the parts of `rig`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import grpc.aio
import pytest
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from turnline.config import Settings
from turnline.hosting.grpc_port import open_server
from turnline.request_handler.grpc_service import make_service
from turnline.request_handler.rig import Rig, RigOptions, open_rig
from turnline.v1 import chat_service_pb2 as pb
from turnline.v1.chat_pb2 import ChatRequest, TurnEnd
from turnline.v1.chat_service_pb2_grpc import ChatServiceStub
from turnline.v1.chunk_pb2 import Position
from turnline.v1.failure_pb2 import Failure

Detail = TypeVar("Detail", bound=Message)
Call = grpc.aio.UnaryStreamCall[pb.StreamChatRequest, pb.StreamChatResponse]

_SETTINGS = {"api": {"host": "127.0.0.1", "grpc_port": 0, "max_body_bytes": 100_000}}


@dataclass(slots=True, kw_only=True)
class Served:
    """A rig, its gRPC server and a client of that.

    Attributes:
        draining: set to have the health say so.
        stop: set to close the server.
        closed: set once it has.
    """

    rig: Rig
    channel: grpc.aio.Channel
    stub: ChatServiceStub
    draining: asyncio.Event
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def serving(options: RigOptions | None = None) -> AsyncIterator[Served]:
    """Serve chat over gRPC for the length of the block."""
    draining, settings = asyncio.Event(), Settings.model_validate(_SETTINGS)
    async with asyncio.timeout(30), open_rig(options) as rig, asyncio.TaskGroup() as tasks:
        server = open_server(settings, [make_service(rig.parts)], draining)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            stub = ChatServiceStub(channel)
            served = Served(rig=rig, channel=channel, stub=stub, draining=draining)

            async def serve() -> None:
                await server.run(served.stop)
                served.closed.set()

            tasks.create_task(serve())
            await server.started.wait()
            try:
                yield served
            finally:
                rig.released.set()
                served.draining.set()
                served.stop.set()


def chat(
    prompt: str = "hello",
    *,
    session_id: str = "s1",
    request_id: str = "",
    agent: str = "",
    user_id: str = "",
) -> pb.ChatServiceChatRequest:
    """A turn to wait for."""
    request = ChatRequest(prompt=prompt, agent=agent, user_id=user_id)
    return pb.ChatServiceChatRequest(session_id=session_id, request_id=request_id, request=request)


def submit(
    prompt: str = "hello", *, session_id: str = "s1", request_id: str = ""
) -> pb.SubmitRequest:
    """A turn to come back for."""
    request = ChatRequest(prompt=prompt)
    return pb.SubmitRequest(session_id=session_id, request_id=request_id, request=request)


def stream(
    prompt: str = "hello",
    *,
    session_id: str = "s1",
    request_id: str = "",
    after: tuple[int, int] | None = None,
) -> pb.StreamChatRequest:
    """A turn to follow."""
    return pb.StreamChatRequest(
        session_id=session_id,
        request_id=request_id,
        request=ChatRequest(prompt=prompt),
        after=_place(after),
    )


def attach(request_id: str, *, after: tuple[int, int] | None = None) -> pb.StreamChatRequest:
    """A turn admitted before, to follow."""
    return pb.StreamChatRequest(request_id=request_id, after=_place(after))


def _place(after: tuple[int, int] | None) -> Position | None:
    return None if after is None else Position(attempt=after[0], index=after[1])


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a call ended with instead of an answer."""

    code: grpc.StatusCode
    text: str
    status: Status
    trailing: dict[str, str | bytes]

    def detail(self, kind: Callable[[], Detail]) -> Detail:
        """The one detail of a kind."""
        for packed in self.status.details:
            message = kind()
            if packed.Unpack(message):
                return message
        raise AssertionError(f"no {kind.__name__} in {self.status}")

    @property
    def info(self) -> ErrorInfo:
        """Our code and the ids."""
        return self.detail(ErrorInfo)

    @property
    def failure(self) -> Failure:
        """The failure, whole."""
        return self.detail(Failure)

    @property
    def field(self) -> str:
        """The request field at fault."""
        field: str = self.detail(BadRequest).field_violations[0].field
        return field

    @property
    def pause(self) -> float:
        """Seconds to wait before another try."""
        microseconds: int = self.detail(RetryInfo).retry_delay.ToMicroseconds()
        return microseconds / 1e6


async def refused(call: Awaitable[object]) -> Refusal:
    """Wait for a call that must not be answered."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    error = caught.value
    trailing = dict(error.trailing_metadata() or ())
    raw = trailing.get("grpc-status-details-bin", b"")
    status = Status.FromString(raw if isinstance(raw, bytes) else b"")
    return Refusal(error.code(), error.details() or "", status, trailing)


async def read(call: Call, count: int) -> list[pb.StreamChatResponse]:
    """The next so many items of a stream that has them."""
    got = [await call.read() for _ in range(count)]
    messages = [item for item in got if isinstance(item, pb.StreamChatResponse)]
    if len(messages) < count:
        raise AssertionError(f"the stream ended after {messages}")
    return messages


async def items(call: Call) -> list[pb.StreamChatResponse]:
    """Everything a stream holds, once it has ended well."""
    return [item async for item in call]


def kinds(items: list[pb.StreamChatResponse]) -> list[str]:
    """What the items are."""
    return [str(item.WhichOneof("item")) for item in items]


def places(items: list[pb.StreamChatResponse]) -> list[tuple[int, int]]:
    """Where the chunks among the items are."""
    return [(item.chunk.attempt, item.chunk.index) for item in items if item.HasField("chunk")]


def text(items: list[pb.StreamChatResponse]) -> str:
    """What the chunks among the items say."""
    return "".join(item.chunk.event.content for item in items if item.HasField("chunk"))


async def end_of(served: Served, request_id: str, *, wait: float = 10.0) -> TurnEnd:
    """The end of a turn, which it must have within so many seconds."""
    request = pb.GetReplyRequest(request_id=request_id)
    request.wait.FromMicroseconds(int(wait * 1e6))
    found = await served.stub.GetReply(request)
    if not found.HasField("end"):
        raise AssertionError(f"no end: {found}")
    return found.end
