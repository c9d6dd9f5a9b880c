"""What an application gets besides answers: agents by name, sessions, ids, scopes, cancelling."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from e2e.process import APPS, Server, dev, serving
from e2e.tokens import token_for

CHAT = "/api/v1/chat"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with serving(tmp_path, *dev()) as server:
        yield server


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Server]:
    async with serving(tmp_path, str(APPS / "io_app.py")) as server:
        yield server


def bearer(user: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token_for(user)}"}


async def chat(client: httpx.AsyncClient, prompt: str, **fields: str) -> dict[str, Any]:
    answer = await client.post(CHAT, json={"prompt": prompt, "session_id": "s1", **fields})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def test_agents_are_listed_and_chosen_by_name_and_the_first_is_the_default(
    server: Server,
) -> None:
    async with server.client() as client:
        names = (await client.get("/api/v1/agents")).json()["agents"]
        default = await chat(client, "x")
        chosen = await chat(client, "x", agent="upper")
        body = {"prompt": "x", "session_id": "s1", "agent": "nobody"}
        unknown = await client.post(CHAT, json=body)

    assert names[:2] == ["echo", "hold"]
    assert (default["result"], chosen["result"]) == ("x ", "X")
    assert unknown.status_code == 400
    assert unknown.json()["detail"]["error"] == "No agent available"


async def test_state_and_history_go_on_from_turn_to_turn(server: Server) -> None:
    async with server.client() as client:
        first = await chat(client, "one", agent="counter")
        second = await chat(client, "two", agent="counter")
        other = await chat(client, "three", agent="counter", session_id="s2")

    assert first["result"] == "count=1 history=[] user="
    assert second["result"] == "count=2 history=[one] user="
    assert other["result"] == "count=1 history=[] user="


async def test_a_repeated_idempotency_key_gives_the_same_answer_and_runs_once(
    server: Server,
) -> None:
    body = {"prompt": "one", "session_id": "s1", "agent": "counter"}
    headers = {"idempotency-key": "key-1"}
    async with server.client() as client:
        first = await client.post(CHAT, json=body, headers=headers)
        again = await client.post(CHAT, json=body, headers=headers)
        other = await client.post(CHAT, json={**body, "prompt": "two"}, headers=headers)
        after = await chat(client, "after", agent="counter")

    assert again.json() == first.json()
    assert first.json()["request_id"] == "key-1"
    assert other.status_code == 422
    assert after["result"] == "count=2 history=[one] user="


async def test_reading_an_answer_leaves_it_there(server: Server) -> None:
    async with server.client() as client:
        answered = await chat(client, "x", request_id="r1")
        reads = [await client.get(CHAT, params={"request_id": "r1"}) for _ in range(3)]

    assert [read.json() for read in reads] == [answered] * 3


async def test_a_running_turn_is_cancelled_and_the_session_goes_on(
    server: Server, tmp_path: Path
) -> None:
    body = {"prompt": str(tmp_path / "never"), "session_id": "s1", "agent": "hold"}
    async with server.client() as client, asyncio.TaskGroup() as tasks:
        caller = tasks.create_task(client.post(CHAT, json={**body, "request_id": "r1"}))
        await server.has_queued(running=1, waiting=0)
        cancelled = await client.delete(CHAT, params={"request_id": "r1"})
        answer = await caller
        after = await chat(client, "next", agent="counter")

    assert (cancelled.status_code, cancelled.json()["status"]) == (202, "CANCELLING")
    assert answer.json()["detail"]["code"] == "turn_cancelled"
    assert after["result"] == "count=1 history=[] user="


async def test_an_agents_own_refusal_reaches_the_caller_and_a_fault_does_not(
    tmp_path: Path,
) -> None:
    settings = {
        "AK_EXECUTION__QUEUES__TYPE": "in_memory",
        "AK_EXECUTION__QUEUES__IN_MEMORY__RETRY_BACKOFF": "0.01",
    }
    async with serving(tmp_path, *dev(), settings=settings) as server, server.client() as client:
        body = {"prompt": "you", "session_id": "s1"}
        refused = await client.post(CHAT, json={**body, "agent": "refusing"})
        broken = await client.post(CHAT, json={**body, "agent": "broken"})

    assert refused.status_code == 402
    assert refused.json()["detail"]["error"] == "no credit for you"
    assert broken.status_code == 500
    assert broken.json()["detail"]["error"] == "Failed to process message after 3 retries"
    assert "secret" not in broken.text


async def test_a_foreign_turn_looks_like_an_unknown_one(guarded: Server) -> None:
    def without_ids(answer: httpx.Response) -> tuple[int, str]:
        return answer.status_code, answer.text.replace("theirs", "ID").replace("nobodys", "ID")

    async with guarded.client() as client:
        body = {"prompt": "x", "session_id": "s1", "request_id": "theirs"}
        await client.post(CHAT, json=body, headers=bearer("owner"))
        for method in ("GET", "DELETE"):
            foreign, unknown = [
                await client.request(
                    method, CHAT, params={"request_id": name}, headers=bearer("stranger")
                )
                for name in ("theirs", "nobodys")
            ]
            assert foreign.status_code == 404
            assert without_ids(foreign) == without_ids(unknown)
        own = await client.get(CHAT, params={"request_id": "theirs"}, headers=bearer("owner"))

    assert own.json()["result"] == "x "


async def test_users_do_not_share_a_session_of_one_name(guarded: Server) -> None:
    body = {"prompt": "one", "session_id": "s1", "agent": "counter", "user_id": "somebody-else"}
    async with guarded.client() as client:
        first = await client.post(CHAT, json=body, headers=bearer("u1"))
        other = await client.post(CHAT, json=body, headers=bearer("u2"))

    assert first.json()["result"] == "count=1 history=[] user=u1"
    assert other.json()["result"] == "count=1 history=[] user=u2"


async def test_custom_routes_are_answered_past_the_queue(guarded: Server) -> None:
    url = f"{guarded.ws_url}/ws?token={token_for('u1')}"
    async with connect(url) as socket:
        await socket.send(json.dumps({"route": "status", "x": 1}))
        answered = json.loads(await socket.recv())
        await socket.send(json.dumps({"route": "silent"}))
        await socket.send(json.dumps({"route": "failing", "request_id": "r9"}))
        failed = json.loads(await socket.recv())

    assert answered == {
        "status": "SUCCESS",
        "up": True,
        "got": {"message": {"route": "status", "x": 1}, "user_id": "u1"},
        "type": "SYSTEM_RESPONSE",
    }
    assert (failed["status"], failed["request_id"]) == ("FAILED", "r9")
    assert failed["message"] == "Route handler encountered an error"
    assert "secret" not in json.dumps(failed)
