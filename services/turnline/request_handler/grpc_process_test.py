"""The gRPC port of the request handler's process: what it is served with, and its end."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import grpc.aio
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest
from grpc_reflection.v1alpha.reflection_pb2_grpc import ServerReflectionStub

from turnline.config import Settings
from turnline.errors import ConfigurationError
from turnline.hosting import Lifecycle, Standalone, open_backends
from turnline.protocol.clock import SystemClock
from turnline.request_handler.grpc_rig import attach, chat, read, refused, submit
from turnline.request_handler.process import serve_request_handler
from turnline.testing.servers.tls import Identity, self_signed
from turnline.v1 import chat_service_pb2 as pb
from turnline.v1.chat_service_pb2_grpc import ChatServiceStub

NAME = "turnline.v1.ChatService"


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """A request handler, without a runner behind it.

    Attributes:
        ended: set once it has ended.
    """

    lifecycle: Lifecycle
    channel: grpc.aio.Channel
    ended: asyncio.Event

    @property
    def stub(self) -> ChatServiceStub:
        """A client."""
        return ChatServiceStub(self.channel)


@asynccontextmanager
async def fronted(*, grace: float = 2.0, tls: Identity | None = None) -> AsyncIterator[Front]:
    settings = Settings.model_validate(
        {
            "api": {
                "host": "127.0.0.1",
                "port": 0,
                "grpc_port": 0,
                "grpc_certificate_file": tls and str(tls.certificate),
                "grpc_private_key_file": tls and str(tls.key),
            },
            "execution": {"drain_grace": grace},
        }
    )
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    lifecycle, ended = Lifecycle(), asyncio.Event()

    async def serve(process: Standalone) -> None:
        await serve_request_handler(process, grpc_started=bound.set_result)
        ended.set()

    async with (
        asyncio.timeout(30),
        open_backends(settings, SystemClock()) as backends,
        asyncio.TaskGroup() as tasks,
    ):
        process = Standalone(settings=settings, lifecycle=lifecycle, backends=backends)
        tasks.create_task(serve(process))
        async with _channel(await bound, tls) as channel:
            yield Front(lifecycle=lifecycle, channel=channel, ended=ended)
        lifecycle.drain()


def _channel(port: int, tls: Identity | None) -> grpc.aio.Channel:
    if tls is None:
        return grpc.aio.insecure_channel(f"127.0.0.1:{port}")
    trusted = grpc.ssl_channel_credentials(tls.certificate.read_bytes())
    return grpc.aio.secure_channel(f"localhost:{port}", trusted)


async def admitted(front: Front, request_id: str) -> None:
    """Wait until a turn is."""
    while True:
        with suppress(grpc.aio.AioRpcError):
            await front.stub.GetReply(pb.GetReplyRequest(request_id=request_id))
            return


# --- what stands beside chat ----------------------------------------------------------------------


@pytest.mark.parametrize("service", ["", NAME])
async def test_its_health_is_told(service: str) -> None:
    async with fronted() as front:
        answer = await HealthStub(front.channel).Check(HealthCheckRequest(service=service))

    assert answer.status == HealthCheckResponse.SERVING


async def test_its_methods_can_be_asked_for() -> None:
    async with fronted() as front:
        call = ServerReflectionStub(front.channel).ServerReflectionInfo()
        await call.write(ServerReflectionRequest(file_containing_symbol=NAME))
        answer = await call.read()
        await call.done_writing()

    described, *_ = answer.file_descriptor_response.file_descriptor_proto
    assert b"StreamChat" in described


# --- what it is served with -----------------------------------------------------------------------


async def test_with_a_certificate_it_is_served_over_tls(tmp_path: Path) -> None:
    async with fronted(tls=self_signed(tmp_path)) as front:
        turn = await front.stub.Submit(submit(request_id="r1"))

    assert turn.request_id == "r1"


async def not_started(**api: object) -> str:
    """The fault of settings it does not start with."""
    settings = Settings.model_validate(
        {"api": {"host": "127.0.0.1", "port": 0, "grpc_port": 0, **api}}
    )
    async with open_backends(settings, SystemClock()) as backends:
        process = Standalone(settings=settings, lifecycle=Lifecycle(), backends=backends)
        with pytest.raises(ConfigurationError) as caught:
            await serve_request_handler(process)
    [fault] = caught.value.faults
    return fault


async def test_a_port_that_is_taken_is_said_at_the_start() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()

        fault = await not_started(grpc_port=other.getsockname()[1])

    assert fault.startswith("api.host/api.grpc_port: cannot listen")


async def test_a_certificate_without_its_key_is_said_at_the_start(tmp_path: Path) -> None:
    fault = await not_started(grpc_certificate_file=str(self_signed(tmp_path).certificate))

    assert fault.startswith("api.grpc_private_key_file: is not set, but api.grpc_certificate_file")


async def test_a_certificate_that_cannot_be_read_is_said_at_the_start(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    fault = await not_started(grpc_certificate_file=missing, grpc_private_key_file=missing)

    assert fault.startswith(f"api.grpc_certificate_file: {missing} cannot be read")


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_where_grpc_is_not_installed_the_port_is_a_fault_of_the_settings() -> None:
    run = run_python(
        "import sys; sys.modules['grpc'] = None; "
        "from turnline.config import Settings; from turnline.hosting import Lifecycle, open_grpc; "
        "from turnline.request_handler.wiring import GRPC_SERVICE; "
        "settings = Settings.model_validate({'api': {'grpc_port': 0}}); "
        "open_grpc(settings, Lifecycle(), {GRPC_SERVICE: None})"
    )

    assert "api.grpc_port: is set, but this installation lacks gRPC" in run.stderr


# --- its end --------------------------------------------------------------------------------------


async def test_whoever_waits_at_the_end_is_told_to_come_back_and_new_turns_are_refused() -> None:
    async with fronted(grace=10.0) as front:
        watch = aiter(HealthStub(front.channel).Watch(HealthCheckRequest()))
        await anext(watch)
        waiter = asyncio.ensure_future(refused(front.stub.Chat(chat(request_id="r1"))))
        await admitted(front, "r1")
        stream = front.stub.StreamChat(attach("r1"))
        await read(stream, 1)
        front.lifecycle.drain()
        told = await anext(watch)
        waiting, streaming = await waiter, await refused(stream.read())
        async with asyncio.timeout(30):
            await front.ended.wait()

    assert told.status == HealthCheckResponse.NOT_SERVING
    assert waiting.code is streaming.code is grpc.StatusCode.UNAVAILABLE
    assert (waiting.info.reason, waiting.info.metadata["request_id"]) == ("draining", "r1")
    assert waiting.pause == streaming.pause == 1.0
