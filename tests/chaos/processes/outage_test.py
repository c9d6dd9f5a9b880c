"""Servers that go away for a while."""

import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from websockets.asyncio.client import ClientConnection, connect

from chaos.processes.brokers import RESTARTABLE
from chaos.processes.callers import CHAT, RestCaller
from chaos.processes.directives import Directives
from chaos.processes.observed import (
    begun,
    commits_of,
    finally_,
    repaired,
    urls,
)
from chaos.processes.topology import Kind, Topology, topology
from e2e.tokens import token_for
from turnline.protocol import SessionKey
from turnline.store.valkey.server import CALL_SECONDS

pytestmark = pytest.mark.asyncio(loop_scope="module")

BROKER_AWAY_SECONDS = 20.0
VALKEY_AWAY_SECONDS = 5.0
USER = "u"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=RESTARTABLE)
async def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Topology]:
    """One of each service, and a second runner."""
    directory = tmp_path_factory.mktemp("outages")
    async with topology(directory, transport=request.param, short_leases=True) as installed:
        await installed.start_all(
            Kind.REQUEST_HANDLER, Kind.GATEWAY, Kind.RUNNER, Kind.RUNNER, Kind.RESPONDER
        )
        yield installed


@pytest_asyncio.fixture(loop_scope="module")
async def caller(installed: Topology) -> AsyncIterator[RestCaller]:
    await repaired(installed)
    caller = RestCaller(lambda: urls(installed, Kind.REQUEST_HANDLER), USER)
    yield caller
    await caller.close()


async def readiness(installed: Topology) -> dict[str, int]:
    """Ask every process that needs the broker whether it is ready."""
    async with httpx.AsyncClient(timeout=5) as client:
        return {
            pod.name: (await client.get(f"{pod.server.url}/ready")).status_code
            for pod in installed.pods
        }


async def post_once(installed: Topology, request: str) -> httpx.Response:
    """Send a turn, once, and give the answer."""
    [url] = urls(installed, Kind.REQUEST_HANDLER)
    body = {"session_id": request, "request_id": request, "prompt": Directives().prompt}
    headers = {"authorization": f"Bearer {token_for(USER)}"}
    async with httpx.AsyncClient(timeout=30) as client:
        return await client.post(url + CHAT, json=body, headers=headers)


async def test_with_the_broker_away_callers_are_told_or_kept_and_all_recovers(
    installed: Topology, caller: RestCaller, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    answered = await caller.ask("broker", "broker-before", Directives().prompt)
    async with asyncio.TaskGroup() as tasks:
        held = Directives(hold=str(go)).prompt
        kept = tasks.create_task(caller.ask("broker", "broker-kept", held))
        await begun(installed, "broker-kept")
        await installed.broker.stop(hard=True)
        went = time.monotonic()
        refused = await post_once(installed, "broker-refused")
        meanwhile = await readiness(installed)
        read = await caller.poll("broker-before")
        go.touch()
        await asyncio.sleep(BROKER_AWAY_SECONDS - (time.monotonic() - went))
        await installed.broker.start()
        following = await caller.ask("broker-2", "broker-after", Directives().prompt)
        await finally_(lambda: _all_ready(installed))

    assert (refused.status_code, "retry-after" in refused.headers) == (503, True)
    assert set(meanwhile.values()) == {503}
    assert read == answered
    assert kept.result().status == following.status == 200
    assert len(commits_of(installed, "broker-kept")) == 1
    session = await installed.session(SessionKey(USER, "broker"))
    assert [record.request_id for record in session.history] == ["broker-before", "broker-kept"]


async def _all_ready(installed: Topology) -> bool:
    return set((await readiness(installed)).values()) == {200}


async def test_with_valkey_frozen_health_answers_at_once_and_sockets_still_echo(
    installed: Topology,
) -> None:
    [gateway] = installed.of(Kind.GATEWAY)
    url = f"{gateway.server.ws_url}/ws?token={token_for(USER)}"
    async with AsyncExitStack() as stack:
        leaving = [await stack.enter_async_context(connect(url)) for _ in range(15)]
        staying = [await stack.enter_async_context(connect(url)) for _ in range(5)]
        for socket in (*leaving, *staying):
            await _echo(socket)  # once it answers it is recorded in the store
        installed.valkey.pause()
        try:
            for socket in leaving:
                socket.transport.abort()
            health, echoes = await _measured(gateway.server.url, staying)
        finally:
            installed.valkey.resume()
    await finally_(lambda: _all_ready(installed))

    # A process that waited for Valkey would answer after its return, or its calls' deadline.
    assert statistics.median(health) < CALL_SECONDS / 2
    assert statistics.median(echoes) < CALL_SECONDS / 2


async def _measured(url: str, sockets: list[ClientConnection]) -> tuple[list[float], list[float]]:
    """Ask for health and talk over sockets for a while; give the seconds each answer took."""
    health: list[float] = []
    echoes: list[float] = []
    ends = time.monotonic() + VALKEY_AWAY_SECONDS
    async with httpx.AsyncClient(timeout=30) as client:
        while time.monotonic() < ends:
            began = time.monotonic()
            assert (await client.get(f"{url}/health")).status_code == 200
            health.append(time.monotonic() - began)
            echoes.append(await _echo(sockets[len(health) % len(sockets)]))
            await asyncio.sleep(0.01)
    return health, echoes


async def _echo(socket: ClientConnection) -> float:
    """Say something that is answered at once; give the seconds that took."""
    began = time.monotonic()
    await socket.send(json.dumps({"route": "none", "request_id": "echo"}))
    async with asyncio.timeout(30):
        while json.loads(await socket.recv()).get("request_id") != "echo":
            pass
    return time.monotonic() - began


async def test_turns_that_run_while_valkey_is_frozen_past_their_lease_are_answered_once(
    installed: Topology, caller: RestCaller, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    async with asyncio.TaskGroup() as tasks:
        held = Directives(hold=str(go)).prompt
        asked = tasks.create_task(caller.ask("valkey", "valkey-1", held))
        await begun(installed, "valkey-1")
        installed.valkey.pause()
        go.touch()
        await asyncio.sleep(VALKEY_AWAY_SECONDS)
        installed.valkey.resume()

    assert asked.result().status == 200
    assert await caller.poll("valkey-1") == asked.result()
    assert len(commits_of(installed, "valkey-1")) == 1
    session = await installed.session(SessionKey(USER, "valkey"))
    assert [record.request_id for record in session.history] == ["valkey-1"]
