"""The push endpoint as a process of its own: no transport, a connection store, other pods."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType

import httpx

from turnline.config import Settings
from turnline.errors import StoreUnavailableError
from turnline.hosting import Lifecycle
from turnline.hosting.ops import Check
from turnline.protocol.clock import SystemClock
from turnline.push import PUSH_PATH, PUSH_TOKEN_HEADER
from turnline.push.endpoint_routes import USER_PUSH_PATH
from turnline.push_endpoint.process import serve_push_endpoint
from turnline.store.memory import MemoryConnectionOptions, MemoryConnectionStore

TOKEN = "secret-of-the-pods-of-these-tests"


@asynccontextmanager
async def serving(
    connections: MemoryConnectionStore,
    *,
    checks: Mapping[str, Check] = MappingProxyType({}),
    **api: object,
) -> AsyncIterator[httpx.AsyncClient]:
    settings = Settings.model_validate(
        {
            "api": {"host": "127.0.0.1", "port": 0},
            "websocket_api": {"push_auth_token": TOKEN},
            "execution": {"drain_grace": 1},
            **api,
        }
    )
    lifecycle = Lifecycle()
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        tasks.create_task(
            serve_push_endpoint(
                settings,
                lifecycle,
                connections=connections,
                clock=SystemClock(),
                checks=checks,
                started=bound.set_result,
            )
        )
        url = f"http://127.0.0.1:{await bound}"
        headers = {PUSH_TOKEN_HEADER: TOKEN}
        async with httpx.AsyncClient(base_url=url, headers=headers) as client:
            yield client
        lifecycle.drain()


def a_store() -> MemoryConnectionStore:
    return MemoryConnectionStore(MemoryConnectionOptions(), SystemClock())


async def test_it_keeps_frames_for_a_user_who_has_no_socket() -> None:
    store = a_store()
    async with serving(store) as client:
        note = {"n": 1, "push_id": "mine"}
        answer = await client.post(USER_PUSH_PATH, json={"user_id": "u", "message": note})

    assert answer.json() == {"status": "SUCCESS", "reached": 0, "held": True}
    assert (await store.held("u")).frames == (note,)


async def test_it_holds_no_connection_itself() -> None:
    async with serving(a_store()) as client:
        answer = await client.post(PUSH_PATH, json={"connection_id": "c", "message": {}})

    assert answer.status_code == 404
    assert answer.json()["detail"]["error"] == "connection 'c' is not held by this pod"


async def test_it_asks_for_the_pods_secret() -> None:
    async with serving(a_store()) as client:
        answer = await client.post(
            USER_PUSH_PATH,
            json={"user_id": "u", "message": {}},
            headers={PUSH_TOKEN_HEADER: "another"},
        )

    assert answer.status_code == 401


async def test_its_metrics_can_be_switched_off() -> None:
    async with serving(a_store(), telemetry={"metrics": False}) as client:
        assert (await client.get("/metrics")).status_code == 404
        assert (await client.get("/health")).status_code == 200


async def test_it_is_ready_only_while_its_store_answers() -> None:
    async def away() -> None:
        raise StoreUnavailableError("no answer")

    async with serving(a_store(), checks={"session_store": away}) as client:
        answer = await client.get("/ready")

    assert answer.status_code == 503
