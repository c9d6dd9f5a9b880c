"""Client sockets on two gateways, while gateways and what serves them die in mid-turn."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from chaos.oracle import socket_faults, stream_faults
from chaos.processes.brokers import RESTARTABLE
from chaos.processes.callers import RestCaller
from chaos.processes.directives import Directives
from chaos.processes.observed import (
    begun,
    eventually,
    finally_,
    logged,
    repaired,
    replaced_as_they_end,
    urls,
)
from chaos.processes.readings import reply_of, stream_of
from chaos.processes.sockets import SocketClient, SocketTurn
from chaos.processes.topology import PUSH_TOKEN, Kind, Pod, Topology, topology
from e2e.tokens import token_for
from turnline.push import PUSH_TOKEN_HEADER

pytestmark = pytest.mark.asyncio(loop_scope="module")

MAPPING_SECONDS = 6
MANY_PIECES = 12


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=RESTARTABLE)
async def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Topology]:
    """Two gateways, and one of everything else; mappings of lost pods expire soon."""
    short = {"session": {"connection_store": {"ttl": MAPPING_SECONDS}}}
    directory = tmp_path_factory.mktemp("sockets")
    async with topology(directory, short, transport=request.param, short_leases=True) as installed:
        await installed.start_all(
            Kind.GATEWAY, Kind.GATEWAY, Kind.REQUEST_HANDLER, Kind.RUNNER, Kind.RESPONDER
        )
        yield installed


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def whole(installed: Topology) -> AsyncIterator[None]:
    """Every test finds every pod up."""
    await repaired(installed)
    yield


@pytest.fixture
def user(request: pytest.FixtureRequest) -> str:
    """A user of this test alone."""
    return str(request.node.name)[-60:]


def socket_to(pod: Pod, user: str) -> connect:
    return connect(f"{pod.server.ws_url}/ws?token={token_for(user)}", max_queue=1_000)


async def say(socket: ClientConnection, request: str, asked: Directives, **more: object) -> None:
    body = {"prompt": asked.prompt, "session_id": request}
    await socket.send(json.dumps({"request_id": request, "body": body, **more}))


async def hear(socket: ClientConnection, within: float = 30.0) -> dict[str, Any]:
    async with asyncio.timeout(within):
        frame: dict[str, Any] = json.loads(await socket.recv())
    return frame


async def hear_end(socket: ClientConnection, within: float = 30.0) -> list[dict[str, Any]]:
    frames = [await hear(socket, within)]
    while not (frames[-1].get("done") or frames[-1]["type"] == "CHAT_RESPONSE"):
        frames.append(await hear(socket, within))
    return frames


async def mapped(installed: Topology, user: str) -> set[str]:
    """Give the pods that are said to hold sockets of a user."""
    async with installed.stores() as stores:
        return {one.endpoint for one in await stores.connections.connections_of(user)}


async def test_a_stream_reaches_every_socket_of_its_user_on_both_gateways(
    installed: Topology, user: str
) -> None:
    one, two = installed.of(Kind.GATEWAY)
    async with socket_to(one, user) as first, socket_to(two, user) as second:
        await finally_(lambda: _mapped_times(installed, user, 2))
        await say(first, f"{user}-1", Directives(chunks=3, gap=0.05), stream=True)
        asker, other = await asyncio.gather(hear_end(first), hear_end(second))

    assert asker[0]["type"] == "CHAT_QUEUED"
    assert asker[1:] == other
    assert socket_faults(other) == []
    # A gateway forgets a socket after it has closed it.
    await finally_(lambda: _mapped_times(installed, user, 0))


async def _mapped_times(installed: Topology, user: str, times: int) -> bool:
    return len(await mapped(installed, user)) == times


async def test_a_client_whose_gateway_is_killed_goes_on_at_another_from_where_it_was(
    installed: Topology, user: str, tmp_path: Path
) -> None:
    dying, other = installed.of(Kind.GATEWAY)
    go, request = tmp_path / "go", f"{user}-1"
    async with socket_to(dying, user) as socket:
        asked = Directives(chunks=MANY_PIECES, gap=0.1)
        await say(socket, request, asked, stream=True)
        before = [await hear(socket) for _ in range(5)]
        dying.kill()
        with pytest.raises(ConnectionClosed):
            while True:
                before.append(await hear(socket))
    async with socket_to(other, user) as socket:
        after = f"{before[-1]['attempt']}-{before[-1]['index']}"
        frame = {"route": "resume", "request_id": request, "body": {"after": after}}
        await socket.send(json.dumps(frame))
        resumed = await hear_end(socket)
    go.touch()

    start = next(at for at, frame in enumerate(resumed) if frame.get("state") == "RESUMING")
    pieces = [frame for frame in [*before[1:], *resumed[start + 1 :]] if "delta" in frame]
    assert "".join(piece["delta"] for piece in pieces) == text_of(request, MANY_PIECES)
    assert socket_faults([*before, *resumed[start:]]) == []


def text_of(request: str, count: int, attempt: int = 1) -> str:
    return "".join(f"{request}.{attempt}.{index} " for index in range(count))


async def test_a_killed_gateways_mapping_goes_and_keeps_nobody_from_an_answer(
    installed: Topology, user: str
) -> None:
    dead, other = installed.of(Kind.GATEWAY)
    async with socket_to(dead, user), socket_to(other, user) as socket:
        await finally_(lambda: _mapped_times(installed, user, 2))
        gone = dead.server.url
        dead.kill()
        await dead.ended()
        await say(socket, f"{user}-1", Directives())
        frames = await hear_end(socket)
        await finally_(lambda: _is_unmapped(installed, user, gone), within=MAPPING_SECONDS + 30)

    assert frames[-1]["type"] == "CHAT_RESPONSE"


async def _is_unmapped(installed: Topology, user: str, endpoint: str) -> bool:
    return endpoint not in await mapped(installed, user)


async def test_the_push_endpoint_reaches_a_user_whose_other_gateway_is_dead(
    installed: Topology, user: str
) -> None:
    dead, other = installed.of(Kind.GATEWAY)
    [endpoint] = installed.of(Kind.PUSH_ENDPOINT) or [await installed.start(Kind.PUSH_ENDPOINT)]
    async with socket_to(dead, user), socket_to(other, user) as socket:
        await finally_(lambda: _mapped_times(installed, user, 2))
        dead.kill()
        await dead.ended()
        headers = {PUSH_TOKEN_HEADER: PUSH_TOKEN}
        notes = [{"push_id": f"{user}-{number}"} for number in range(2)]
        body = {"user_id": user, "messages": notes}
        async with httpx.AsyncClient(base_url=endpoint.server.url, headers=headers) as client:
            answer = await client.post("/internal/push/user", json=body)
        frames = [await hear(socket), await hear(socket)]

    told = answer.json()
    assert (told["status"], told["reached"]) == ("SUCCESS", 1)
    assert frames == notes


async def test_an_asker_whose_gateway_was_out_of_reach_soon_gets_every_answer(
    installed: Topology, user: str, tmp_path: Path
) -> None:
    frozen, other = installed.of(Kind.GATEWAY)
    go = tmp_path / "go"
    async with socket_to(frozen, user) as asker, socket_to(other, user) as elsewhere:
        await finally_(lambda: _mapped_times(installed, user, 2))
        await say(asker, f"{user}-1", Directives(hold=str(go)))
        await begun(installed, f"{user}-1")
        unreachable = len(logged(installed, Kind.RESPONDER, "push.unreachable"))
        frozen.freeze()
        go.touch()
        told = await hear_end(elsewhere)
        await eventually(
            lambda: len(logged(installed, Kind.RESPONDER, "push.unreachable")) > unreachable
        )
        frozen.thaw()
        # Asked while the pod still counts as unreachable, though it is not.
        await say(asker, f"{user}-2", Directives())
        told += await hear_end(elsewhere)
        heard = await hear_ends(asker, 2)

    assert heard == {frame["request_id"]: frame["result"] for frame in told}


async def hear_ends(socket: ClientConnection, count: int) -> dict[str, str]:
    """Hear the answers of so many turns, by request id."""
    ends: dict[str, str] = {}
    while len(ends) < count:
        frame = (await hear_end(socket))[-1]
        ends[frame["request_id"]] = frame["result"]
    return ends


@pytest.mark.parametrize(
    "kind", [Kind.GATEWAY, Kind.RUNNER, Kind.RESPONDER, Kind.REQUEST_HANDLER], ids=str
)
async def test_streams_are_whole_though_a_process_is_killed_in_their_middle(
    installed: Topology, user: str, kind: Kind
) -> None:
    asked = Directives(chunks=MANY_PIECES, gap=0.15)
    rest = RestCaller(lambda: urls(installed, Kind.REQUEST_HANDLER), user)
    socket = SocketClient(
        lambda: [url.replace("http", "ws", 1) for url in urls(installed, Kind.GATEWAY)], user
    )
    by_socket, by_rest = f"{user}-socket", f"{user}-rest"
    turn = SocketTurn(session=by_socket, request=by_socket, prompt=asked.prompt, stream=True)
    async with replaced_as_they_end(installed, kind), asyncio.TaskGroup() as tasks:
        streaming = tasks.create_task(socket.turn(turn))
        reading = tasks.create_task(rest.events(by_rest, by_rest, asked.prompt))
        await begun(installed, by_socket)
        await begun(installed, by_rest)
        await asyncio.sleep(0.5)  # into the middle of the pieces
        for pod in installed.of(kind):
            pod.kill()
    kept = reply_of(by_rest, await rest.poll(by_rest))
    also_kept = await rest.poll(by_socket)
    await rest.close()
    await socket.close()

    assert stream_faults(stream_of(reading.result(), kept)) == []
    assert streaming.result()["status_code"] == 200
    assert [fault for frames in socket.connections for fault in socket_faults(frames)] == []
    attempt = 2 if kind is Kind.RUNNER else 1
    assert also_kept.body["result"] == text_of(by_socket, MANY_PIECES, attempt)
