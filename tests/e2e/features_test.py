"""What an application gets besides answers: agents by name, sessions, ids, scopes, cancelling."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from e2e.clients import SERVED, Told, Turn, caller, over_both
from e2e.process import APPS, Server, dev, serving
from e2e.tokens import token_for


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with serving(tmp_path, *dev(), settings=SERVED) as server:
        yield server


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Server]:
    async with serving(tmp_path, str(APPS / "io_app.py"), settings=SERVED) as server:
        yield server


def counting(prompt: str, **fields: str) -> Turn:
    """A turn of the agent that counts its session's."""
    return replace(Turn(prompt=prompt, agent="counter"), **fields)


async def test_agents_are_listed(server: Server) -> None:
    async with server.client() as client:
        names = (await client.get("/api/v1/agents")).json()["agents"]

    assert names[:2] == ["echo", "hold"]


@over_both
async def test_an_agent_is_chosen_by_name_and_the_first_is_the_default(
    server: Server, surface: str
) -> None:
    async with caller(server, surface) as client:
        default = await client.chat(Turn(prompt="x"))
        chosen = await client.chat(Turn(prompt="x", agent="upper"))
        unknown = await client.chat(Turn(prompt="x", agent="nobody"))

    assert (default.result, chosen.result) == ("x ", "X")
    assert (unknown.status, unknown.message) == (400, "No agent available")


@over_both
async def test_state_and_history_go_on_from_turn_to_turn(server: Server, surface: str) -> None:
    async with caller(server, surface) as client:
        first = await client.chat(counting("one"))
        second = await client.chat(counting("two"))
        other = await client.chat(counting("three", session_id="s2"))

    assert first.result == "count=1 history=[] user="
    assert second.result == "count=2 history=[one] user="
    assert other.result == "count=1 history=[] user="


@over_both
async def test_a_repeated_name_gives_the_same_answer_and_runs_once(
    server: Server, surface: str
) -> None:
    async with caller(server, surface) as client:
        first = await client.chat(counting("one", request_id="key-1"))
        again = await client.chat(counting("one", request_id="key-1"))
        other = await client.chat(counting("two", request_id="key-1"))
        after = await client.chat(counting("after"))

    assert again == first
    assert first.request_id == "key-1"
    assert (other.status, other.code) == (422, "request_id_reused")
    assert after.result == "count=2 history=[one] user="


@pytest.mark.parametrize(("first", "second"), [("rest", "grpc"), ("grpc", "rest")])
async def test_a_name_is_known_whichever_way_it_comes(
    server: Server, first: str, second: str
) -> None:
    async with caller(server, first) as one, caller(server, second) as other:
        asked = await one.chat(counting("one", request_id="key-1"))
        again = await other.chat(counting("one", request_id="key-1"))
        after = await other.chat(counting("after"))

    assert again == asked
    assert after.result == "count=2 history=[one] user="


@over_both
async def test_reading_an_answer_leaves_it_there(server: Server, surface: str) -> None:
    async with caller(server, surface) as client:
        answered = await client.chat(Turn(prompt="x", request_id="r1"))
        reads = [await client.reply("r1") for _ in range(3)]

    assert reads == [answered] * 3


@over_both
async def test_a_running_turn_is_cancelled_and_the_session_goes_on(
    server: Server, surface: str, tmp_path: Path
) -> None:
    held = Turn(prompt=str(tmp_path / "never"), agent="hold", request_id="r1")
    async with caller(server, surface) as client, asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(client.chat(held))
        await server.has_queued(running=1, waiting=0)
        cancelled = await client.cancel("r1")
        answer = await waiting
        after = await client.chat(counting("next"))

    assert cancelled == "running"
    assert (answer.status, answer.code) == (499, "turn_cancelled")
    assert after.result == "count=1 history=[] user="


@over_both
async def test_an_agents_own_refusal_reaches_the_caller_and_a_fault_does_not(
    surface: str, tmp_path: Path
) -> None:
    settings = {
        **SERVED,
        "AK_EXECUTION__QUEUES__TYPE": "in_memory",
        "AK_EXECUTION__QUEUES__IN_MEMORY__RETRY_BACKOFF": "0.01",
    }
    async with (
        serving(tmp_path, *dev(), settings=settings) as server,
        caller(server, surface) as client,
    ):
        refused = await client.chat(Turn(prompt="you", agent="refusing"))
        broken = await client.chat(Turn(prompt="you", agent="broken"))

    assert (refused.status, refused.message) == (402, "no credit for you")
    assert (broken.status, broken.message) == (500, "Failed to process message after 3 retries")


@over_both
async def test_a_foreign_turn_looks_like_an_unknown_one(guarded: Server, surface: str) -> None:
    def without_ids(told: str | Told) -> str:
        return str(told).replace("theirs", "ID").replace("nobodys", "ID")

    async with (
        caller(guarded, surface, token=token_for("owner")) as owner,
        caller(guarded, surface, token=token_for("stranger")) as stranger,
    ):
        await owner.chat(Turn(prompt="x", request_id="theirs"))
        for ask in (stranger.reply, stranger.cancel):
            foreign, unknown = await ask("theirs"), await ask("nobodys")
            assert isinstance(foreign, Told)
            assert (foreign.status, foreign.code) == (404, "not_found")
            assert without_ids(foreign) == without_ids(unknown)
        own = await owner.reply("theirs")

    assert own.result == "x "


@over_both
async def test_users_do_not_share_a_session_of_one_name(guarded: Server, surface: str) -> None:
    asked = counting("one", user_id="somebody-else")
    async with (
        caller(guarded, surface, token=token_for("u1")) as one,
        caller(guarded, surface, token=token_for("u2")) as two,
    ):
        first, other = await one.chat(asked), await two.chat(asked)

    assert first.result == "count=1 history=[] user=u1"
    assert other.result == "count=1 history=[] user=u2"


@over_both
async def test_nobody_is_served_without_a_token(guarded: Server, surface: str) -> None:
    async with caller(guarded, surface) as client:
        answer = await client.chat(Turn(prompt="x"))

    assert (answer.status, answer.code) == (401, "unauthenticated")


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
