"""Each service as it runs in a process of its own, over one transport and one set of stores.

A broker's adapter gives several processes the same queues; here the in_memory one is handed to
several services in one event loop.  What they say to each other directly (pushes) goes over HTTP.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect

from e2e.process import run
from turnline.agent import AgentRegistry, Turn, agent
from turnline.auth import AuthValidator, ValidationResult
from turnline.auth.port import Context
from turnline.config import Settings
from turnline.errors import ConfigurationError
from turnline.gateway.process import pod_endpoint, serve_gateway
from turnline.gateway.rig_talks import Conversation, call_at, over_both, socket_at
from turnline.hosting import Backends, Lifecycle, Standalone, open_backends
from turnline.pipeline.io_process import serve_io
from turnline.protocol.clock import SystemClock
from turnline.push import PUSH_TOKEN_HEADER
from turnline.push_endpoint.process import serve_push_endpoint
from turnline.request_handler.process import serve_request_handler
from turnline.responder.process import serve_responder
from turnline.runner.process import serve_runner
from turnline.telemetry import Metrics

TOKEN = "secret-of-the-pods-of-these-tests"
CHAT = "/api/v1/chat"

Serve = Callable[[Standalone], Awaitable[None]]


class NamedByToken(AuthValidator):
    """Takes every token for its user's name."""

    async def validate(self, token: str, context: Context | None = None) -> ValidationResult:
        return ValidationResult(is_valid=True, claims={"userId": token})


def agents() -> AgentRegistry:
    registry = AgentRegistry()

    @agent("echo", registry=registry)
    async def echo(turn: Turn) -> AsyncIterator[str]:
        for word in turn.prompt.split():
            yield f"{word} "

    return registry


def settings(**websocket_api: object) -> Settings:
    return Settings.model_validate(
        {
            "api": {"host": "127.0.0.1", "port": 0, "grpc_port": 0},
            "execution": {"drain_grace": 3},
            "websocket_api": {"push_auth_token": TOKEN, **websocket_api},
        }
    )


@dataclass(slots=True)
class Running:
    """One service that serves.

    Attributes:
        grpc_port: 0 for a service that has none.
    """

    port: int
    lifecycle: Lifecycle
    task: asyncio.Task[None]
    grpc_port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self, over: str) -> AbstractAsyncContextManager[Conversation]:
        """Open a connection of user u to a gateway."""
        return call_at(self.grpc_port, "u") if over == "grpc" else socket_at(self.port, "u")

    async def stop(self) -> None:
        self.lifecycle.drain()
        await self.task


class Installation:
    """Services over one transport and one set of stores."""

    def __init__(self, backends: Backends, tasks: asyncio.TaskGroup) -> None:
        self.backends = backends
        self._tasks = tasks
        self.running: list[Running] = []

    async def start(self, serve: Serve, given: Settings | None = None) -> Running:
        """Start a service as its `main` would, with metrics of its own."""
        bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        lifecycle = Lifecycle()
        process = Standalone(
            settings=given or settings(),
            lifecycle=lifecycle,
            backends=replace(self.backends, metrics=Metrics(process=False)),
            started=bound.set_result,
        )
        task = self._tasks.create_task(_served(serve, process))
        running = Running(await bound, lifecycle, task)
        self.running.append(running)
        await _ready(running)
        return running

    async def start_gateway(self, given: Settings | None = None) -> Running:
        bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def serve(process: Standalone) -> Awaitable[None]:
            return serve_gateway(
                process, validator=NamedByToken(), routes={}, grpc_started=bound.set_result
            )

        running = await self.start(serve, given)
        running.grpc_port = await bound
        return running

    async def start_runner(self) -> Running:
        return await self.start(lambda process: serve_runner(process, agents=agents()))


async def _served(serve: Serve, process: Standalone) -> None:
    await serve(process)


async def _ready(running: Running) -> None:
    async with asyncio.timeout(30), httpx.AsyncClient(base_url=running.url) as client:
        while (await client.get("/ready")).status_code != 200:  # noqa: ASYNC110 - told when asked
            await asyncio.sleep(0.01)


@asynccontextmanager
async def installation() -> AsyncIterator[Installation]:
    async with (
        asyncio.timeout(40),
        open_backends(settings(), SystemClock()) as backends,
        asyncio.TaskGroup() as tasks,
    ):
        installed = Installation(backends, tasks)
        yield installed
        for running in installed.running:
            running.lifecycle.drain()


async def hear(socket: ClientConnection) -> dict[str, Any]:
    async with asyncio.timeout(30):
        frame: dict[str, Any] = json.loads(await socket.recv())
    return frame


async def test_a_rest_turn_crosses_request_handler_runner_and_responder() -> None:
    async with installation() as installed:
        front = await installed.start(serve_request_handler)
        await installed.start_runner()
        await installed.start(serve_responder)
        async with httpx.AsyncClient(base_url=front.url) as client:
            answer = await client.post(CHAT, json={"prompt": "hello there", "session_id": "s"})
            stream = await client.post(
                CHAT,
                json={"prompt": "one two", "session_id": "s"},
                headers={"accept": "text/event-stream"},
            )

    assert (answer.status_code, answer.json()["result"]) == (200, "hello there ")
    deltas = [json.loads(line[6:]) for line in stream.text.splitlines() if line[:6] == "data: "]
    assert "".join(data.get("delta", "") for data in deltas) == "one two "


async def test_the_guides_io_side_and_runner_share_the_work() -> None:
    async with installation() as installed:
        front = await installed.start(lambda process: serve_io(process, validator=None))
        await installed.start_runner()
        async with httpx.AsyncClient(base_url=front.url) as client:
            answer = await client.post(CHAT, json={"prompt": "hello", "session_id": "s"})

    assert answer.json()["result"] == "hello "


@over_both
async def test_frames_reach_clients_on_every_gateway_over_the_pods_push_endpoints(
    over: str,
) -> None:
    async with installation() as installed:
        one, two = await installed.start_gateway(), await installed.start_gateway()
        await installed.start_runner()
        await installed.start(serve_responder)
        async with one.connect(over) as first, two.connect(over) as second:
            await second.ask(route="none")
            queued = await first.ask(request_id="r", body={"prompt": "hello", "session_id": "s"})
            answer, elsewhere = await first.hear(), await second.hear()

    assert queued["type"] == "CHAT_QUEUED"
    assert answer == elsewhere
    assert (answer["type"], answer["result"]) == ("CHAT_RESPONSE", "hello ")


@over_both
async def test_an_answer_survives_the_gateway_its_question_came_through(over: str) -> None:
    async with installation() as installed:
        old = await installed.start_gateway()
        async with old.connect(over) as client:
            body = {"prompt": "hello", "session_id": "s"}
            assert (await client.ask(request_id="r", body=body))["type"] == "CHAT_QUEUED"
            old.lifecycle.drain()
            assert (await client.hear())["status"] == "RECONNECT"
            told = await client.told_to_come_back()
        await old.task
        new = await installed.start_gateway()
        await installed.start_runner()
        await installed.start(serve_responder)
        async with new.connect(over) as client:
            answer = await client.hear()

    assert told
    assert (answer["request_id"], answer["result"]) == ("r", "hello ")


async def test_the_push_endpoint_reaches_a_user_wherever_their_sockets_are() -> None:
    async with installation() as installed:
        gateway = await installed.start_gateway()

        async def serve(process: Standalone) -> None:
            await serve_push_endpoint(
                process.settings,
                process.lifecycle,
                connections=process.backends.stores.connections,
                clock=process.backends.clock,
                started=process.started,
            )

        endpoint = await installed.start(serve)
        async with (
            connect(f"ws://127.0.0.1:{gateway.port}/ws?token=u") as socket,
            httpx.AsyncClient(base_url=endpoint.url, headers={PUSH_TOKEN_HEADER: TOKEN}) as client,
        ):
            await socket.send(json.dumps({"route": "none"}))
            await hear(socket)
            notes = [{"push_id": "a"}, {"push_id": "b"}]
            body = {"user_id": "u", "messages": notes}
            answer = await client.post("/internal/push/user", json=body)
            frames = [await hear(socket), await hear(socket)]
            nobody = await client.post(
                "/internal/push/user", json={"user_id": "nobody", "message": {"n": 3}}
            )
            metrics = (await client.get("/metrics")).text

    assert answer.json() == {"status": "SUCCESS", "reached": 1, "held": False}
    assert frames == notes
    assert nobody.json() == {"status": "SUCCESS", "reached": 0, "held": True}
    assert 'turnline_frames_pushed_total{result="held"} 1.0' in metrics


async def test_a_push_port_set_apart_keeps_pushes_off_the_clients_port(
    unused_tcp_port: int,
) -> None:
    async with installation() as installed:
        gateway = await installed.start_gateway(settings(push_port=unused_tcp_port))
        headers = {PUSH_TOKEN_HEADER: TOKEN}
        body = {"connection_id": "c", "message": {}}
        async with httpx.AsyncClient(headers=headers) as client:
            clients = await client.post(f"{gateway.url}/internal/push", json=body)
            pods = await client.post(f"http://127.0.0.1:{unused_tcp_port}/internal/push", json=body)

    assert (clients.status_code, clients.json()["detail"]["error"]) == (404, "Not Found")
    assert pods.json()["detail"]["error"] == "connection 'c' is not held by this pod"


async def test_the_services_say_how_they_are() -> None:
    async with installation() as installed:
        services = [
            await installed.start(serve_request_handler),
            await installed.start_gateway(),
            await installed.start_runner(),
            await installed.start(serve_responder),
        ]
        async with httpx.AsyncClient() as client:
            for service in services:
                assert (await client.get(f"{service.url}/health")).json()["status"] == "ok"
                assert "turnline_queue_waiting" in (await client.get(f"{service.url}/metrics")).text
        for service in services:
            await service.stop()


@pytest.mark.parametrize(
    ("host", "pod_ip", "endpoint"),
    [
        ("0.0.0.0", "10.1.2.3", "http://10.1.2.3:8000"),
        ("10.1.2.4", "", "http://10.1.2.4:8000"),
        ("::", "fd00::1", "http://[fd00::1]:8000"),
    ],
)
def test_a_gateway_is_reached_at_its_pods_address(host: str, pod_ip: str, endpoint: str) -> None:
    given = Settings.model_validate({"api": {"host": host}})

    assert pod_endpoint(given, pod_ip=pod_ip, port=8000) == endpoint


def test_a_gateway_without_an_address_does_not_start() -> None:
    with pytest.raises(ConfigurationError) as refused:
        pod_endpoint(Settings(), pod_ip="", port=8000)

    assert refused.value.faults[0].startswith("AK_POD_IP: is not set")


@pytest.mark.parametrize(
    ("service", "fault"),
    [
        ("request_handler", "execution.queues.type: in_memory lives inside one process"),
        ("gateway", "execution.queues.type: in_memory lives inside one process"),
        ("runner", "execution.queues.type: in_memory lives inside one process"),
        ("responder", "execution.queues.type: in_memory lives inside one process"),
        ("push_endpoint", "websocket_api.push_auth_token: is not set"),
    ],
)
async def test_a_service_that_cannot_work_by_itself_says_why_and_exits_78(
    tmp_path: Path, service: str, fault: str
) -> None:
    ended = await run(tmp_path, "-m", f"turnline.{service}.main")

    assert ended.code == 78
    assert fault in ended.stderr
    assert "Traceback" not in ended.stderr
