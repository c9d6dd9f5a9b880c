"""The push endpoint as a process over a connection store that pods share: SIGTERM during a push."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import grpc.aio
from starlette.applications import Starlette

from turnline.config import Settings
from turnline.hosting import WebOptions, WebServer
from turnline.protocol.clock import SystemClock
from turnline.push import PUSH_TOKEN_HEADER, Frame
from turnline.push.endpoint import PushHandler
from turnline.push.endpoint_routes import push_routes
from turnline.store import Connection
from turnline.store.registry import open_stores
from turnline.testing.servers.valkey import running_valkey
from turnline.v1.push_pb2 import UserFrames
from turnline.v1.push_service_pb2 import PushRequest
from turnline.v1.push_service_pb2_grpc import PushServiceStub

TOKEN = "secret-of-the-pods-of-these-tests"


class Pod:
    """A gateway's sockets, which take frames once they may.

    Attributes:
        asked: set when frames came.
    """

    def __init__(self) -> None:
        self.asked, self.may_take = asyncio.Event(), asyncio.Event()

    async def push(self, connection_id: str, frames: Sequence[Frame]) -> bool:
        self.asked.set()
        await self.may_take.wait()
        return True


@asynccontextmanager
async def serving(pod: Pod) -> AsyncIterator[str]:
    """Serve a pod; give its endpoint."""
    handler = PushHandler(token=TOKEN, local=pod, users=None)
    web = WebServer(Starlette(routes=push_routes(handler)), WebOptions(host="127.0.0.1", port=0))
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(web.run(stop))
        await web.started.wait()
        yield f"http://127.0.0.1:{web.port}"
        stop.set()


@asynccontextmanager
async def process(
    folder: Path, store_url: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """Run the endpoint; give its process and the port of gRPC."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    with (folder / "log").open("wb") as log:
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "turnline.push_endpoint.main",
            cwd=folder,
            env={
                "PATH": os.environ.get("PATH", ""),
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
                "AK_API__HOST": "127.0.0.1",
                "AK_API__PORT": "0",
                "AK_SESSION__TYPE": "valkey",
                "AK_SESSION__VALKEY__URL": store_url,
                "AK_WEBSOCKET_API__PUSH_AUTH_TOKEN": TOKEN,
                "AK_WEBSOCKET_API__PUSH_GRPC_PORT": str(port),
            },
            stderr=log,
        )
    try:
        yield child, port
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


def said(folder: Path) -> str:
    """What the process has logged."""
    return (folder / "log").read_text()


async def says(folder: Path, event: str) -> None:
    """Wait until it has logged an event."""
    while event not in said(folder):  # noqa: ASYNC110 - told by a file only
        await asyncio.sleep(0.01)


async def test_a_push_that_runs_at_sigterm_ends_well_and_then_the_process_does(
    tmp_path: Path,
) -> None:
    pod = Pod()
    with running_valkey() as server:
        settings = Settings.model_validate(
            {"session": {"type": "valkey", "valkey": {"url": server.url}}}
        )
        async with (
            asyncio.timeout(60),
            serving(pod) as endpoint,
            open_stores(settings, SystemClock()) as stores,
            process(tmp_path, server.url) as (child, port),
            grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
        ):
            await stores.connections.add(
                Connection(user_id="u", connection_id="c", endpoint=endpoint)
            )
            request = PushRequest(frames=UserFrames(user_id="u"))
            request.frames.frames.add().update({"n": 1})
            call = PushServiceStub(channel).Push(
                request, metadata=((PUSH_TOKEN_HEADER, TOKEN),), wait_for_ready=True
            )
            await pod.asked.wait()
            child.send_signal(signal.SIGTERM)
            await says(tmp_path, "process.draining")
            pod.may_take.set()

            assert (await call).connections == 1
            assert await child.wait() == 0
