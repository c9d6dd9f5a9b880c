"""A gRPC server that starts, drains and stops on this process's terms, as `WebServer` does.

Services raise Turnline's errors as they are; here they become a status and details.  Serves
`grpc.health.v1` and reflection beside them, to everybody.  A module of its own, so that a process
without gRPC need not load it.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_reflection.v1alpha import reflection
from typing_extensions import override

from turnline.errors import ConfigurationError, DrainingError, InternalError, TurnlineError
from turnline.hosting.grpc_errors import abort, end_call
from turnline.hosting.interrupts import Interruptible
from turnline.protocol import Failure
from turnline.telemetry import get_logger

_log = get_logger("hosting")

# Of the time calls have to end: what is left to say why, when they have not; and as much again for
# watchers of the health to go.
_LAST_WORD_SECONDS = 0.25

_MAX_METADATA_BYTES = 32_768

# A text, because the library's class takes no types when the code runs.
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Context = grpc.aio.ServicerContext[Any, Any]
Metadata = Mapping[str, str | bytes]
Continuation = Callable[[grpc.HandlerCallDetails], Awaitable["Handler | None"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcOptions:
    """Where and how to serve.

    Attributes:
        port: 0 lets the system choose; see `GrpcServer.port`.
        setting: key of the setting that names the port, for the fault when it is taken.
        credentials: certificate and key to serve with; None means without TLS.
        max_message_bytes: largest request taken; a larger one is RESOURCE_EXHAUSTED.
        max_calls: calls at once; more are RESOURCE_EXHAUSTED.
        close_seconds: how long running calls may take to end at shutdown; what runs longer is
            UNAVAILABLE, with the pause to keep.
        send_seconds: how long a reader may leave a message of a stream unread; then it is ABORTED.
        ping_seconds: silence on a connection after which it is tried, so that nothing between
            takes it for idle; as long without an answer ends it.
        draining: set when the process begins to drain, some time before it stops: from then on
            the health is NOT_SERVING.  None: from when it stops.
    """

    host: str
    port: int
    setting: str
    credentials: grpc.ServerCredentials | None = None
    max_message_bytes: int = 4 * 1024 * 1024
    max_calls: int = 256
    close_seconds: float = 3.0
    send_seconds: float = 30.0
    ping_seconds: float = 20.0
    draining: asyncio.Event | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcService:
    """A service to serve.

    Attributes:
        name: its full name, `turnline.v1.PushService`.
        register: adds its servicer to a server.  Its methods take one request, or a stream of them
            and then write their own answers.
        authenticate: called with the name of a call's method (`Push`) and its metadata, before its
            request is read; raises TurnlineError to refuse it.  The servicer sees context
            variables that it sets.  None takes every call.
    """

    name: str
    register: Callable[[grpc.aio.Server], None]
    authenticate: Callable[[str, Metadata], Awaitable[None]] | None = None


class GrpcServer:
    """One listening port and the services behind it.  Belongs to the loop it is made on."""

    def __init__(self, services: Sequence[GrpcService], options: GrpcOptions) -> None:
        """Bind the port.

        Raises:
            ConfigurationError: the address cannot be bound.
        """
        self._options = options
        self._calls = _Calls(services, options.send_seconds)
        self._health = _Health(service.name for service in services)
        self._server = grpc.aio.server(
            interceptors=[self._calls],
            options=_channel_options(options),
            maximum_concurrent_rpcs=options.max_calls,
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        for service in services:
            service.register(self._server)
        health = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
        known = [health, reflection.SERVICE_NAME, *(service.name for service in services)]
        reflection.enable_server_reflection(known, self._server)
        self.started = asyncio.Event()
        self.port = _bind(self._server, options)

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set, then close: no new calls, running ones have `close_seconds`.

        Watchers of the health are told NOT_SERVING and let go.  Cancelled, it ends every call at
        once.
        """
        try:
            await self._server.start()
            self.started.set()
            _log.info("server.listening", surface="grpc", port=self.port)
            if self._options.draining is not None:
                await self._options.draining.wait()
                self._health.drain()
            await stop.wait()
            await self._drain()
        finally:
            await asyncio.shield(self._server.stop(None))

    async def _drain(self) -> None:
        # New calls are refused by us before the library does it, whose refusal may read as if the
        # caller had cancelled.
        self._health.drain()
        await self._calls.finish(self._options.close_seconds - 2 * _LAST_WORD_SECONDS)
        await self._server.stop(_LAST_WORD_SECONDS)


def _channel_options(options: GrpcOptions) -> list[tuple[str, int]]:
    ping = int(options.ping_seconds * 1000)
    return [
        # Or two processes would share the port, and each get some of the calls.
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", options.max_message_bytes),
        # Room for a token with many claims, as HTTP servers have.
        ("grpc.max_metadata_size", _MAX_METADATA_BYTES),
        ("grpc.keepalive_time_ms", ping),
        ("grpc.keepalive_timeout_ms", ping),
        ("grpc.keepalive_permit_without_calls", 1),
        # Pings that keep a silent stream open are no abuse, on either side.
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", ping // 2),
    ]


def _bind(server: grpc.aio.Server, options: GrpcOptions) -> int:
    host = f"[{options.host}]" if ":" in options.host else options.host
    address = f"{host}:{options.port}"
    try:
        if options.credentials is not None:
            return server.add_secure_port(address, options.credentials)
        return server.add_insecure_port(address)
    except RuntimeError as error:
        fault = f"api.host/{options.setting}: cannot listen on {address}; "
        raise ConfigurationError([fault + f"set {options.setting} to a free port"]) from error


class _Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc] # the library has no types
    """`grpc.health.v1` of a server that serves all it has until it drains.

    The library's own servicer keeps watchers until they leave, and so the end of the process
    waiting; here they are told and let go.
    """

    def __init__(self, services: Iterable[str]) -> None:
        self._services = frozenset(services) | {""}
        self._draining = asyncio.Event()

    def drain(self) -> None:
        """From now on NOT_SERVING; tell the watchers so and end their calls."""
        self._draining.set()

    @override
    async def Check(self, request: HealthCheckRequest, context: Context) -> HealthCheckResponse:
        if request.service not in self._services:
            await context.abort(grpc.StatusCode.NOT_FOUND, "Unknown service")
        return self._status(request.service)

    @override
    async def Watch(
        self, request: HealthCheckRequest, context: Context
    ) -> AsyncIterator[HealthCheckResponse]:
        yield self._status(request.service)
        if not self._draining.is_set():
            await self._draining.wait()
            yield self._status(request.service)

    def _status(self, service: str) -> HealthCheckResponse:
        if service not in self._services:
            return HealthCheckResponse(status=HealthCheckResponse.SERVICE_UNKNOWN)
        if self._draining.is_set():
            return HealthCheckResponse(status=HealthCheckResponse.NOT_SERVING)
        return HealthCheckResponse(status=HealthCheckResponse.SERVING)


class _SlowReaderError(Exception):
    """The reader of a stream left a message unread for too long."""


class _Calls(grpc.aio.ServerInterceptor):
    """Stands before each call of our services: who may, what an error becomes, and the drain."""

    def __init__(self, services: Sequence[GrpcService], send_seconds: float) -> None:
        self._services = {service.name: service for service in services}
        self._send_seconds = send_seconds
        self._running: set[Interruptible] = set()
        self._finishing = False
        self._idle = asyncio.Event()
        self._idle.set()

    @override
    async def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> "Handler | None":
        _, name, method = handler_call_details.method.split("/")
        service = self._services.get(name)
        handler = await continuation(handler_call_details)
        if service is None or handler is None:
            return handler
        try:
            if self._finishing:
                raise DrainingError
            if service.authenticate is not None:
                metadata = handler_call_details.invocation_metadata or ()
                await service.authenticate(method, dict(metadata))
        except TurnlineError as error:
            return _refusal(error)
        return self._guarded(handler)

    async def finish(self, seconds: float) -> None:
        """Refuse new calls and wait for running ones; after `seconds` they end with DrainingError.

        Returns at the latest a quarter of a second after that.
        """
        self._finishing = True
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, seconds)):
                await self._idle.wait()
        for call in list(self._running):
            call.interrupt(DrainingError())
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORD_SECONDS):
                await self._idle.wait()

    def _guarded(self, handler: Handler) -> Handler:
        unary: Any = handler.unary_unary
        stream: Any = handler.unary_stream
        both: Any = handler.stream_stream

        async def answer(request: object, context: Context) -> object:
            async with self._call(context):
                return await unary(request, context)

        async def answers(request: object, context: Context) -> None:
            async with self._call(context), aclosing(stream(request, context)) as messages:
                async for message in messages:
                    await self._write(context, message)

        async def converse(requests: object, context: Context) -> None:
            async with self._call(context):
                await both(requests, context)

        read, write = handler.request_deserializer, handler.response_serializer
        if handler.request_streaming:
            return grpc.stream_stream_rpc_method_handler(converse, read, write)
        if handler.response_streaming:
            return grpc.unary_stream_rpc_method_handler(answers, read, write)
        return grpc.unary_unary_rpc_method_handler(answer, read, write)

    async def _write(self, context: Context, message: object) -> None:
        """Write one message of a stream; waits while its reader's window is full."""
        try:
            async with asyncio.timeout(self._send_seconds):
                await context.write(message)
        except TimeoutError:
            raise _SlowReaderError from None

    @asynccontextmanager
    async def _call(self, context: Context) -> AsyncIterator[None]:
        """Count a call as running, and end it with a status if its block raises."""
        interruptible = Interruptible()
        self._running.add(interruptible)
        self._idle.clear()
        try:
            async with interruptible:
                yield
        except TurnlineError as error:
            await end_call(context, Failure.from_error(error))
        except _SlowReaderError:
            await abort(context, grpc.StatusCode.ABORTED, "What was sent is not being read")
        except grpc.aio.AbortError:
            raise
        except Exception as error:  # noqa: BLE001 - the last stop before the caller
            _log.error("request.failed", surface="grpc", exc_info=error)
            await end_call(context, Failure.from_error(InternalError()))
        finally:
            self._running.discard(interruptible)
            if not self._running:
                self._idle.set()


def _refusal(error: TurnlineError) -> Handler:
    async def refuse(_: object, context: Context) -> None:
        await end_call(context, Failure.from_error(error))

    # To gRPC a stream of requests, which is not read before somebody asks for the first.
    return grpc.stream_unary_rpc_method_handler(refuse)
