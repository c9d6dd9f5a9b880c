"""Direct mode in containers: sockets' frames run the agent in the process that takes them."""

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from turnline.aws.rig import Cloud
from turnline.aws.rig_container import Container, container
from turnline.testing.servers.api_gateway import ApiGateway

USER = "user-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One container that is called as API Gateway calls it."""

    process: Container
    client: httpx.AsyncClient

    async def connect(self, name: str, token: str = USER) -> int:
        """Open a socket; give the status of its handshake."""
        return (await self._post(f"/ws/connect?token={token}", name)).status_code

    async def send(self, name: str, frame: Mapping[str, Any]) -> dict[str, Any]:
        """Send a frame; give the one that answers it."""
        answer: dict[str, Any] = (await self._post("/ws/message", name, frame)).json()
        return answer

    async def chat(self, prompt: str, request_id: str, *, session: str = "s") -> dict[str, Any]:
        """Send a chat frame on the socket `a`."""
        body = {"prompt": prompt, "session_id": session}
        return await self.send("a", {"request_id": request_id, "body": body})

    async def _post(
        self, path: str, name: str, frame: Mapping[str, Any] | None = None
    ) -> httpx.Response:
        return await self.client.post(path, headers={"x-ak-connection-id": name}, json=frame)


@asynccontextmanager
async def direct(
    cloud: Cloud, gateway: ApiGateway, mode: str = "async", **more: str
) -> AsyncIterator[Api]:
    settings = {
        **cloud.no_queues,
        "AK_EXECUTION__MODE": mode,
        "AK_WEBSOCKET_API__ENDPOINT_URL": gateway.url,
        **more,
    }
    async with container(cloud, "ecs_direct", settings) as process, process.client() as client:
        yield Api(process=process, client=client)


@pytest.fixture
async def gateway() -> AsyncIterator[ApiGateway]:
    async with ApiGateway() as gateway:
        for name in ("a", "b", "other"):
            gateway.open(name)
        yield gateway


def ends(frames: list[Any]) -> list[tuple[str, object]]:
    """Give the request id and result of each answer."""
    return [(f["request_id"], f.get("result")) for f in frames if f["type"] == "CHAT_RESPONSE"]


async def until_ends(gateway: ApiGateway, count: int) -> list[tuple[str, object]]:
    async with asyncio.timeout(60):
        seen = count
        while len(ends(frames := await gateway.until("a", seen, within=60.0))) < count:
            seen = len(frames) + 1
    return ends(frames)


async def test_answers_reach_all_sockets_of_the_user_and_a_session_keeps_its_order(
    cloud: Cloud, gateway: ApiGateway
) -> None:
    async with direct(cloud, gateway) as api:
        told = [await api.connect("a"), await api.connect("b"), await api.connect("c", "forged")]
        await api.connect("other", "user-2")
        queued = [await api.chat("count", f"r{number}") for number in range(5)]
        custom = await api.send("a", {"route": "status"})
        answers = await until_ends(gateway, 5)
        history = await cloud.history("s", scope=USER)
        code = await api.process.stop()

    assert told == [200, 200, 401]
    assert [frame["type"] for frame in queued] == ["CHAT_QUEUED"] * 5
    assert (custom["up"], custom["who"]) == (True, USER)
    assert answers == [(f"r{number}", f"{number + 1} of {USER} ") for number in range(5)]
    assert ends(gateway.frames["b"]) == answers
    assert gateway.frames["other"] == []
    assert [turn.request_id for turn in history] == [f"r{number}" for number in range(5)]
    assert code == 0


async def test_a_stream_arrives_piece_by_piece_and_ends_once(
    cloud: Cloud, gateway: ApiGateway
) -> None:
    async with direct(cloud, gateway, "stream") as api:
        await api.connect("a")
        await api.chat("say one two three", "r")
        frames = await gateway.until_done("a", within=60.0)

    assert {frame["type"] for frame in frames} == {"STREAM_CHUNK"}
    assert "".join(frame.get("delta", "") for frame in frames) == "one two three "
    assert [frame["done"] for frame in frames].count(True) == 1


async def test_a_frame_that_is_sent_again_attaches_to_its_turn_or_gets_its_end(
    cloud: Cloud, gateway: ApiGateway
) -> None:
    async with direct(cloud, gateway) as api:
        await api.connect("a")
        await api.chat("meet 2", "r")
        again = await api.chat("meet 2", "r")
        other = await api.chat("something else", "r")
        await cloud.until_started(1)
        with (cloud.folder / "starts").open("a") as starts:
            starts.write("somebody\n")
        await until_ends(gateway, 1)
        late = await api.chat("meet 2", "r")
        history = await cloud.history("s", scope=USER)

    assert again["type"] == "CHAT_QUEUED"
    assert (other["status"], other["code"]) == ("FAILED", "request_id_reused")
    assert (late["type"], late["result"]) == ("CHAT_RESPONSE", "2 ")
    assert cloud.starts == ["meet 2", "somebody"]
    assert [turn.request_id for turn in history] == ["r"]


async def test_callers_are_told_of_turns_that_fail_and_that_take_too_long(
    cloud: Cloud, gateway: ApiGateway
) -> None:
    more = {"AK_EXECUTION__TURN_TIMEOUT": "3", "AK_EXECUTION__QUEUES__TYPE": "in_memory"}
    async with direct(cloud, gateway, **more) as api:
        await api.connect("a")
        unknown = await api.send(
            "a", {"body": {"prompt": "x", "session_id": "s", "agent": "nobody"}}
        )
        await api.chat("fail", "r1")
        await api.chat("stall", "r2", session="t")
        await until_ends(gateway, 2)
        frames = {frame["request_id"]: frame for frame in gateway.frames["a"]}
        history = [*await cloud.history("s", scope=USER), *await cloud.history("t", scope=USER)]

    assert (unknown["status"], unknown["code"]) == ("FAILED", "unknown_agent")
    assert (frames["r1"]["status_code"], frames["r1"]["code"]) == (500, "agent_failed")
    assert frames["r2"]["status_code"] == 504
    assert cloud.starts.count("fail") == 3
    assert history == []


async def test_a_turn_whose_process_was_killed_runs_elsewhere_when_it_is_sent_again(
    cloud: Cloud, gateway: ApiGateway
) -> None:
    async with direct(cloud, gateway) as first:
        await first.connect("a")
        await first.chat("stall then answer", "r")
        await cloud.until_started(1)
        await first.process.stop(signal.SIGKILL)
    async with direct(cloud, gateway) as second:
        queued = await second.chat("stall then answer", "r")
        answers = await until_ends(gateway, 1)
        history = await cloud.history("s", scope=USER)

    assert queued["type"] == "CHAT_QUEUED"
    assert answers == [("r", "then answer ")]
    assert [turn.request_id for turn in history] == ["r"]


async def test_a_process_that_stops_tells_who_waits_to_send_again(
    cloud: Cloud, gateway: ApiGateway
) -> None:
    more = {"AK_EXECUTION__DRAIN_GRACE": "4"}
    async with direct(cloud, gateway, **more) as first, direct(cloud, gateway) as second:
        await first.connect("a")
        await first.chat("stall then answer", "r1")
        await first.chat("say next", "r2")
        await cloud.until_started(1)
        code = await first.process.stop()
        told = gateway.frames["a"].copy()
        for request_id, prompt in (("r1", "stall then answer"), ("r2", "say next")):
            await second.chat(prompt, request_id)
        answers = await until_ends(gateway, 2)
        history = await cloud.history("s", scope=USER)

    assert code == 0
    assert {(f["type"], f["code"], f["request_id"]) for f in told} == {
        ("SYSTEM_RESPONSE", "draining", "r1"),
        ("SYSTEM_RESPONSE", "draining", "r2"),
    }
    assert answers == [("r1", "then answer "), ("r2", "next ")]
    assert [turn.request_id for turn in history] == ["r1", "r2"]


async def test_an_answer_that_reaches_nobody_comes_once_the_next_socket_is_open(
    cloud: Cloud, gateway: ApiGateway
) -> None:
    async with direct(cloud, gateway) as api:
        await api.connect("a")
        gateway.close("a")
        await api.chat("say hello", "r")
        await cloud.until_held(USER)
        # The answer to `$connect` opens it, so its first call is refused.
        gateway.refuse("b", 410)
        await api.connect("b")
        frames = await gateway.until_done("b", within=60.0)
        await cloud.until_held(USER, anything=False)

    assert set(ends(frames)) == {("r", "hello ")}


async def test_settings_that_do_not_fit_end_it_with_all_that_is_wrong(cloud: Cloud) -> None:
    stores = ("AK_SESSION__TYPE", "AK_EXECUTION__RESPONSE_STORE__TYPE")
    more = {
        **cloud.no_queues,
        **dict.fromkeys(stores, "in_memory"),
        "AK_EXECUTION__MODE": "async",
    }
    process = Container(cloud, "ecs_sockets", more)
    code = await process.ended()

    assert code == 78
    for fault in (
        "execution.response_store.type: is in_memory",
        "session.type: is in_memory",
        "but none is registered",
        "websocket_api.endpoint_url: is not set",
        "auth.type: is none",
    ):
        assert fault in process.log
