"""What the server adds to any service: refusals, statuses, and an end in time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest
from grpc_reflection.v1alpha.reflection_pb2_grpc import ServerReflectionStub

from turnline.errors import NotFoundError, UnauthenticatedError
from turnline.hosting.grpc_server import GrpcOptions, GrpcServer, GrpcService, Handler

NAME = "tests.Words"

# What a client of HTTP/2 begins with, empty settings included, and the type of a PING frame.
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
_PING = 6

# A hundred megabytes, of which no reader's window holds a fifth.
_FLOOD = 1_000

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

    async def flood(self, _: bytes, __: object) -> AsyncIterator[bytes]:
        try:
            while self.calls < _FLOOD:
                self.calls += 1
                yield b"x" * 100_000
                self.said.set()
        finally:
            self.ended.set()

    async def abort(self, _: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
        await context.abort(grpc.StatusCode.OUT_OF_RANGE, "as the service says")

    def register(self, server: grpc.aio.Server) -> None:
        handlers: dict[str, Handler] = {
            "Stream": grpc.unary_stream_rpc_method_handler(self.stream),
            "Flood": grpc.unary_stream_rpc_method_handler(self.flood),
            "Abort": grpc.unary_unary_rpc_method_handler(self.abort),
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(NAME, handlers),))


async def refuse(_method: object, _metadata: object) -> None:
    raise UnauthenticatedError("who are you")


def options(
    *,
    close_seconds: float = 5.0,
    send_seconds: float = 30.0,
    ping_seconds: float = 20.0,
    draining: asyncio.Event | None = None,
) -> GrpcOptions:
    return GrpcOptions(
        host="127.0.0.1",
        port=0,
        setting="a.port",
        close_seconds=close_seconds,
        send_seconds=send_seconds,
        ping_seconds=ping_seconds,
        max_calls=2,
        draining=draining,
    )


@asynccontextmanager
async def serving(
    words: Words, options: GrpcOptions, *, closed: bool = False
) -> AsyncIterator[tuple[GrpcServer, asyncio.Event]]:
    """Serve on any free port; gives the server and the event that stops it."""
    service = GrpcService(
        name=NAME, register=words.register, authenticate=refuse if closed else None
    )
    server, stop = GrpcServer([service], options), asyncio.Event()
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        tasks.create_task(server.run(stop))
        await server.started.wait()
        yield server, stop
        if options.draining is not None:
            options.draining.set()
        stop.set()


@asynccontextmanager
async def served(
    words: Words, options: GrpcOptions | None = None, *, closed: bool = False
) -> AsyncIterator[tuple[grpc.aio.Channel, asyncio.Event]]:
    """As `serving`, but gives a channel to it."""
    async with (
        serving(words, options or _OPTIONS, closed=closed) as (server, stop),
        grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel,
    ):
        yield channel, stop


_OPTIONS = options()


def streamed(channel: grpc.aio.Channel, request: bytes, *, name: str = "Stream") -> Call:
    method: grpc.aio.UnaryStreamMultiCallable[bytes, bytes]
    method = channel.unary_stream(f"/{NAME}/{name}")
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


async def test_a_long_token_is_taken() -> None:
    words = Words()
    words.go_on.set()
    async with served(words) as (channel, _):
        method: grpc.aio.UnaryStreamMultiCallable[bytes, bytes]
        method = channel.unary_stream(f"/{NAME}/Stream")
        call = method(b"", metadata=(("authorization", "x" * 24_000),))

        assert (await told(call))[1] is grpc.StatusCode.OK


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
    async with served(words, options(close_seconds=close_seconds)) as (channel, stop):
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


# --- readers who do not read ----------------------------------------------------------------------


async def test_what_a_slow_reader_has_not_read_is_not_made() -> None:
    words = Words()
    async with served(words, options(send_seconds=0.5)) as (channel, _):
        call = streamed(channel, b"", name="Flood")
        await words.ended.wait()
        made = words.calls
        got, code = await told(call)

    assert made < _FLOOD / 5
    assert (len(got) <= made, code) == (True, grpc.StatusCode.ABORTED)


async def test_a_stream_nobody_reads_does_not_hold_up_the_end() -> None:
    words = Words()
    async with served(words, options(close_seconds=0.5)) as (channel, stop):
        call = streamed(channel, b"", name="Flood")
        await words.said.wait()
        stop.set()
        await words.ended.wait()
        _, code = await told(call)

    assert code is grpc.StatusCode.UNAVAILABLE


async def test_a_reader_that_was_let_go_does_not_hold_up_the_end() -> None:
    words, stop = Words(), asyncio.Event()
    server = GrpcServer(
        [GrpcService(name=NAME, register=words.register)],
        options(send_seconds=0.3, close_seconds=15.0),
    )
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(server.run(stop))
        await server.started.wait()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            call = streamed(channel, b"", name="Flood")
            await words.ended.wait()
            stop.set()
            async with asyncio.timeout(30):
                await asyncio.wait([running])
            call.cancel()


# --- what stands beside the services --------------------------------------------------------------


async def test_the_health_says_that_the_process_drains_before_it_stops() -> None:
    draining = asyncio.Event()
    async with served(Words(), options(draining=draining)) as (channel, _):
        watch = aiter(HealthStub(channel).Watch(HealthCheckRequest(service=NAME)))
        first = await anext(watch)
        draining.set()
        second = await anext(watch)
        check = await HealthStub(channel).Check(HealthCheckRequest())

    assert first.status == HealthCheckResponse.SERVING
    assert second.status == check.status == HealthCheckResponse.NOT_SERVING


async def test_what_is_served_can_be_asked_for() -> None:
    async with served(Words(), closed=True) as (channel, _):
        call = ServerReflectionStub(channel).ServerReflectionInfo()
        await call.write(ServerReflectionRequest(list_services=""))
        answer = await call.read()
        await call.done_writing()

    names = {service.name for service in answer.list_services_response.service}
    assert names == {NAME, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}


async def test_a_silent_connection_is_tried_so_that_nothing_between_takes_it_for_idle() -> None:
    async with serving(Words(), options(ping_seconds=0.2)) as (server, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(_PREFACE)
        kind = -1
        while kind != _PING:
            header = await reader.readexactly(9)
            kind = header[3]
            await reader.readexactly(int.from_bytes(header[:3], "big"))
        writer.close()

    assert kind == _PING
