"""The servers these tests are told of by environment; what each variable is, the rig says."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from turnline_client import AsyncClient, RetryPolicy, Tls, TurnlineError

ONCE = RetryPolicy(max_tries=1)
LONG = 60.0
"""Seconds that nothing takes, on the slowest machine."""


@dataclass(frozen=True, slots=True)
class Rig:
    """Where the servers are, and who is known there."""

    open: str = os.environ["TURNLINE_OPEN"]
    strict: str = os.environ["TURNLINE_STRICT"]
    token: str = os.environ["TURNLINE_TOKEN"]
    other_token: str = os.environ["TURNLINE_OTHER_TOKEN"]
    draining: str = os.environ["TURNLINE_DRAINING"]
    draining_pid: int = int(os.environ["TURNLINE_DRAINING_PID"])
    folder: Path = Path(os.environ["TURNLINE_FOLDER"])

    @property
    def tls(self) -> Tls:
        """How the strict server is known."""
        return Tls(root_certificates=Path(os.environ["TURNLINE_STRICT_CA"]).read_bytes())

    def strictly(self, token: str | None, retry: RetryPolicy = ONCE) -> AsyncClient:
        """Make a client of the strict server."""
        return AsyncClient(self.strict, token=token, tls=self.tls, timeout=LONG, retry=retry)


async def admitted(client: AsyncClient, request_id: str) -> None:
    """Wait until a turn is."""
    async with asyncio.timeout(LONG):
        while True:
            with suppress(TurnlineError):
                await client.reply(request_id)
                return
            await asyncio.sleep(0.02)


@pytest.fixture(scope="session")
def rig() -> Rig:
    return Rig()


@pytest.fixture
async def client(rig: Rig) -> AsyncIterator[AsyncClient]:
    """A client of the open server."""
    async with AsyncClient(rig.open, timeout=LONG) as client:
        yield client


@pytest.fixture
async def strict(rig: Rig) -> AsyncIterator[AsyncClient]:
    """A client of the strict server, with a user's token, that tries once."""
    async with rig.strictly(rig.token) as client:
        yield client
