"""What the server adds to any service: refusals, statuses, and an end in time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from turnline.errors import CODES, NotFoundError, QueueFullError, UnauthenticatedError
from turnline.hosting.grpc_errors import trailers
from turnline.hosting.grpc_server import GrpcOptions, GrpcServer, GrpcService, Handler
from turnline.protocol import Failure

NAME = "tests.Words"

Call = grpc.aio.UnaryStreamCall[bytes, bytes]


class Words:
    """A service over plain bytes: gives words one by one, and fails when told to."""

    def __init__(self) -> None:
        self.said = asyncio.Event()
        self.calls = 0
        self.two_calls = asyncio.Event()
        self.go_on = asyncio.Event()
        self.ended = asyncio.Event()

    async def stream(self, request: bytes, _: object) -> AsyncIterator[bytes]:
        try:
            yield b"one"
            self.said.set()
            self.calls += 1
            if self.calls == 2:
                self.two_calls.set()
            await self.go_on.wait()
            if request == b"fail":
                raise NotFoundError("no more words")
            yield b"two"
        finally:
            self.ended.set()

    async def abort(self, _: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
        await context.abort(grpc.StatusCode.OUT_OF_RANGE, "as the service says")

    def register(self, server: grpc.aio.Server) -> None:
        handlers: dict[str, Handler] = {
            "Stream": grpc.unary_stream_rpc_method_handler(self.stream),
            "Abort": grpc.unary_unary_rpc_method_handler(self.abort),
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(NAME, handlers),))


async def refuse(_method: object, _metadata: object) -> None:
    raise UnauthenticatedError("who are you")


@asynccontextmanager
async def served(
    words: Words, *, close_seconds: float = 5.0, closed: bool = False
) -> AsyncIterator[tuple[grpc.aio.Channel, asyncio.Event]]:
    """Serve on any free port; gives a channel to it and the event that stops it."""
    service = GrpcService(
        name=NAME, register=words.register, authenticate=refuse if closed else None
    )
    options = GrpcOptions(
        host="127.0.0.1", port=0, setting="a.port", close_seconds=close_seconds, max_calls=2
    )
    server, stop = GrpcServer([service], options), asyncio.Event()
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        tasks.create_task(server.run(stop))
        await server.started.wait()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            yield channel, stop
        stop.set()


def streamed(channel: grpc.aio.Channel, request: bytes) -> Call:
    method: grpc.aio.UnaryStreamMultiCallable[bytes, bytes]
    method = channel.unary_stream(f"/{NAME}/Stream")
    return method(request)


async def failed(channel: grpc.aio.Channel, path: str) -> grpc.aio.AioRpcError:
    """How a call with one answer fails."""
    method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(path)
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await method(b"")
    return caught.value


async def told(call: Call) -> tuple[list[bytes], grpc.StatusCode]:
    """What a stream says, and what it ends with."""
    messages: list[bytes] = []
    try:
        async for message in call:
            messages.append(message)
    except grpc.aio.AioRpcError:
        pass
    return messages, await call.code()


async def test_an_error_in_a_stream_ends_it_with_its_status() -> None:
    words = Words()
    words.go_on.set()
    async with served(words) as (channel, _):
        assert await told(streamed(channel, b"fail")) == ([b"one"], grpc.StatusCode.NOT_FOUND)
        assert await told(streamed(channel, b"")) == ([b"one", b"two"], grpc.StatusCode.OK)


async def test_a_status_the_service_chose_stays() -> None:
    async with served(Words()) as (channel, _):
        error = await failed(channel, f"/{NAME}/Abort")

    assert error.code() is grpc.StatusCode.OUT_OF_RANGE
    assert error.details() == "as the service says"


async def test_a_stream_can_be_refused_before_it_begins() -> None:
    words = Words()
    async with served(words, closed=True) as (channel, _):
        answer = await told(streamed(channel, b""))

    assert answer == ([], grpc.StatusCode.UNAUTHENTICATED)
    assert not words.said.is_set()


async def test_a_method_nobody_serves_is_unimplemented() -> None:
    async with served(Words(), closed=True) as (channel, _):
        error = await failed(channel, "/tests.Others/Any")

    assert error.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_stream_whose_reader_leaves_is_closed() -> None:
    words = Words()
    async with served(words) as (channel, _):
        call = streamed(channel, b"")
        await words.said.wait()
        call.cancel()

        await words.ended.wait()


async def test_a_running_stream_may_end_within_the_time_to_close() -> None:
    words = Words()
    async with served(words) as (channel, stop):
        call = streamed(channel, b"")
        await words.said.wait()
        stop.set()
        words.go_on.set()

        assert await told(call) == ([b"one", b"two"], grpc.StatusCode.OK)


@pytest.mark.parametrize("close_seconds", [0.0, 0.5])
async def test_a_stream_that_outlasts_it_is_told_to_come_back(close_seconds: float) -> None:
    words = Words()
    async with served(words, close_seconds=close_seconds) as (channel, stop):
        call = streamed(channel, b"")
        await words.said.wait()
        stop.set()

        assert await told(call) == ([b"one"], grpc.StatusCode.UNAVAILABLE)


async def test_more_calls_than_allowed_are_refused() -> None:
    words = Words()
    async with served(words) as (channel, _):
        calls = [streamed(channel, b"") for _ in range(2)]
        await words.two_calls.wait()
        late = await told(streamed(channel, b""))
        words.go_on.set()

        assert late == ([], grpc.StatusCode.RESOURCE_EXHAUSTED)
        assert [code for _, code in [await told(call) for call in calls]] == [
            grpc.StatusCode.OK,
            grpc.StatusCode.OK,
        ]


def test_every_code_has_a_grpc_status() -> None:
    names = {meaning.grpc_status for meaning in CODES.values()}

    assert names <= {status.name for status in grpc.StatusCode}


def test_details_tell_codes_of_one_status_apart() -> None:
    error = QueueFullError("full", scope="session", retry_after=0.0004)

    found = dict(trailers(Failure.from_error(error)))
    status = Status.FromString(bytes(found["grpc-status-details-bin"]))  # type: ignore[arg-type] # is bytes
    info = ErrorInfo()

    assert status.details[0].Unpack(info)
    assert (info.reason, info.metadata["retry"]) == ("session_queue_full", "after")
    assert found["grpc-retry-pushback-ms"] == "1"
