"""The gateway with a validator that only the settings name."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import jwt
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from turnline.config import Settings
from turnline.errors import ConfigurationError
from turnline.gateway.main import prepared
from turnline.hosting import Lifecycle, Standalone, State, open_backends
from turnline.protocol.clock import SystemClock

SECRET = "a secret of these tests, longer than a hash"


def a_token(secret: str = SECRET, **claims: object) -> str:
    return jwt.encode({"userId": "u1", "exp": time.time() + 60, **claims}, secret, "HS256")


@asynccontextmanager
async def gateway(**auth: object) -> AsyncIterator[str]:
    """Serve a gateway by settings alone; gives the address of its sockets."""
    settings = Settings.model_validate(
        {
            "api": {"host": "127.0.0.1", "port": 0},
            "execution": {"drain_grace": 1},
            "auth": {"type": "jwt", **auth},
        }
    )
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    lifecycle = Lifecycle()
    async with (
        asyncio.timeout(20),
        open_backends(settings, SystemClock()) as backends,
        asyncio.TaskGroup() as tasks,
    ):
        process = Standalone(
            settings=settings, lifecycle=lifecycle, backends=backends, started=bound.set_result
        )
        serve = prepared(settings)

        async def run() -> None:
            await serve(process)

        tasks.create_task(run())
        port = await bound
        while lifecycle.state is not State.READY:  # noqa: ASYNC110 - a state has no event
            await asyncio.sleep(0.005)
        yield f"ws://127.0.0.1:{port}/ws"
        lifecycle.drain()


async def closed_with(url: str, token: str) -> int | None:
    """What a socket is closed with at once; None if it is taken."""
    async with connect(f"{url}?token={token}") as client:
        try:
            await (await client.ping())
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else 0
    return None


async def test_it_takes_and_refuses_sockets_as_the_settings_say() -> None:
    async with gateway(jwt={"secret": SECRET, "audience": "chat"}) as url:
        codes = [
            await closed_with(url, token)
            for token in (a_token(aud="chat"), a_token(aud="mail"), a_token(SECRET[::-1]), "x")
        ]

    assert codes == [None, 1008, 1008, 1008]


def test_without_a_validator_it_does_not_start() -> None:
    with pytest.raises(ConfigurationError) as refused:
        prepared(Settings())

    assert "set it to jwt or custom" in refused.value.faults[0]
