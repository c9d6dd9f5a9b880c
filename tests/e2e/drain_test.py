"""SIGTERM: everybody who waits is told, nothing waits for ever, and the exit code is 0."""

import asyncio
import json
from pathlib import Path
from signal import SIGTERM

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from e2e.process import Server, dev, serving

CHAT = "/api/v1/chat"


def settings(*, grace: float, concurrency: int = 5) -> dict[str, str]:
    return {
        "AK_EXECUTION__DRAIN_GRACE": str(grace),
        "AK_EXECUTION__MAX_CONCURRENCY": str(concurrency),
    }


def ask(
    client: httpx.AsyncClient, tasks: asyncio.TaskGroup, *, count: int, agent: str, prompt: str
) -> list[asyncio.Task[httpx.Response]]:
    bodies = [
        {"prompt": prompt, "session_id": f"s{index}", "agent": agent} for index in range(count)
    ]
    return [tasks.create_task(client.post(CHAT, json=body)) for body in bodies]


def assert_told_to_come_back(answer: httpx.Response) -> None:
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.json()["detail"]["code"] == "draining"


async def test_running_turns_finish_and_queued_callers_are_told_to_come_back(
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    async with (
        serving(tmp_path / "app", *dev(), settings=settings(grace=20)) as server,
        server.client() as client,
        asyncio.TaskGroup() as tasks,
    ):
        callers = ask(client, tasks, count=20, agent="hold", prompt=str(gate))
        await server.has_queued(running=5, waiting=15)
        server.signal(SIGTERM)
        await server.is_draining()

        ready = await client.get("/ready")
        health = await client.get("/health")
        late = await client.post(CHAT, json={"prompt": "late", "session_id": "late"})
        gate.touch()
        answers = [await caller for caller in callers]
        ended = await server.ended()

    assert (ready.status_code, ready.json()) == (503, {"status": "draining"})
    assert health.status_code == 200
    assert_told_to_come_back(late)
    finished = [answer for answer in answers if answer.status_code == 200]
    assert [answer.json()["result"] for answer in finished] == ["holding done"] * 5
    for answer in answers:
        if answer not in finished:
            assert_told_to_come_back(answer)
            assert answer.json()["detail"]["request_id"]
    assert len(answers) == 20
    assert ended.code == 0


async def test_turns_that_outlast_the_grace_are_handed_back_and_their_callers_told(
    tmp_path: Path,
) -> None:
    async with (
        serving(tmp_path, *dev(), settings=settings(grace=1)) as server,
        server.client() as client,
        asyncio.TaskGroup() as tasks,
    ):
        callers = ask(client, tasks, count=20, agent="hold", prompt=str(tmp_path / "never"))
        await server.has_queued(running=5, waiting=15)
        server.signal(SIGTERM)
        await server.is_draining()

        ended = await server.ended()
        answers = [await caller for caller in callers]

    for answer in answers:
        assert_told_to_come_back(answer)
    assert ended.code == 0
    assert server.events("process.overran") == []


@pytest.mark.parametrize("agent", ["hung", "blocking", "threading"])
async def test_an_agent_that_does_not_stop_does_not_keep_the_process(
    tmp_path: Path, agent: str
) -> None:
    async with (
        serving(tmp_path, *dev(), settings=settings(grace=2)) as server,
        server.client() as client,
        asyncio.TaskGroup() as tasks,
    ):
        [caller] = ask(client, tasks, count=1, agent=agent, prompt="x")
        await server.has_queued(running=1, waiting=0)
        server.signal(SIGTERM)
        await server.is_draining()

        ended = await server.ended()
        answer = await caller

    assert_told_to_come_back(answer)
    assert ended.code == 0


async def test_an_agent_left_behind_is_named_in_the_log(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, *dev(), settings=settings(grace=1)) as server,
        server.client() as client,
        asyncio.TaskGroup() as tasks,
    ):
        ask(client, tasks, count=1, agent="hung", prompt="x")
        await server.has_queued(running=1, waiting=0)
        server.signal(SIGTERM)
        await server.ended()

    assert [entry["agent"] for entry in server.events("agent.stuck")] == ["hung"]


async def test_stream_readers_get_a_retry_hint_and_a_clean_end(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, *dev(), settings=settings(grace=2)) as server,
        server.client() as client,
        asyncio.TaskGroup() as tasks,
    ):
        body = {"prompt": str(tmp_path / "never"), "session_id": "s", "agent": "hold"}
        started = asyncio.Event()
        reader = tasks.create_task(read_stream(client, body, started))
        await started.wait()
        server.signal(SIGTERM)

        text = await reader
        ended = await server.ended()

    assert '"delta":"holding "' in text
    last = text.rstrip("\n").split("\n\n")[-1]
    assert last.startswith("retry: ")
    assert int(last.split()[1]) > 0
    assert '"done":true' not in text
    assert ended.code == 0


async def read_stream(
    client: httpx.AsyncClient, body: dict[str, str], started: asyncio.Event
) -> str:
    headers = {"accept": "text/event-stream"}
    text = ""
    async with client.stream("POST", CHAT, json=body, headers=headers) as answer:
        async for piece in answer.aiter_text():
            text += piece
            if "holding" in text:
                started.set()
    return text


async def test_idle_sockets_are_told_to_reconnect_and_closed_with_1012(tmp_path: Path) -> None:
    async with serving(tmp_path, *dev(), settings=settings(grace=5)) as server:
        sockets = [await open_socket(server, f"user{index}") for index in range(5)]
        async with asyncio.TaskGroup() as tasks:
            readers = [tasks.create_task(read_to_close(socket)) for socket in sockets]
            server.signal(SIGTERM)
            await server.is_draining()
            ended = await server.ended()

    pauses = []
    for reader in readers:
        frames, code = reader.result()
        assert code == 1012
        assert [frame["status"] for frame in frames] == ["RECONNECT"]
        pauses.append(frames[0]["retry_after"])
    assert len(set(pauses)) > 1
    assert ended.code == 0


async def open_socket(server: Server, token: str) -> ClientConnection:
    headers = {"authorization": f"Bearer {token}"}
    socket = await connect(f"{server.ws_url}/ws", additional_headers=headers)
    await socket.send(json.dumps({"route": "cancel"}))  # answered, so the socket is held by now
    assert json.loads(await socket.recv())["status"] == "FAILED"
    return socket


async def read_to_close(socket: ClientConnection) -> tuple[list[dict[str, str]], int]:
    frames = []
    try:
        async with asyncio.timeout(30):
            while True:
                frames.append(json.loads(await socket.recv()))
    except ConnectionClosed as closed:
        assert closed.rcvd is not None
        return frames, closed.rcvd.code


async def test_an_idle_process_ends_at_once(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, *dev(), settings=settings(grace=30)) as server,
        server.client() as client,
    ):
        await client.get("/health")  # over a connection that is kept alive

        server.signal(SIGTERM)
        ended = await server.ended(within=25)  # less than the grace period

    assert ended.code == 0


async def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, *dev(), settings=settings(grace=30)) as server,
        server.client() as client,
        asyncio.TaskGroup() as tasks,
    ):
        body = {"prompt": "x", "session_id": "s", "agent": "hung"}
        caller = tasks.create_task(post_and_lose(client, body))
        await server.has_queued(running=1, waiting=0)
        server.signal(SIGTERM)
        await server.is_draining()

        server.signal(SIGTERM)
        ended = await server.ended(within=25)
        await caller

    assert ended.code == 1


async def post_and_lose(client: httpx.AsyncClient, body: dict[str, str]) -> None:
    try:
        await client.post(CHAT, json=body)
    except httpx.TransportError:
        return
