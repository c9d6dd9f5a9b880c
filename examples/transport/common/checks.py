"""What the tests of the examples share: an example that runs."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from websockets.asyncio.client import connect

START_SECONDS = 90.0
END_SECONDS = 40.0


@asynccontextmanager
async def up(folder: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, dict[str, str]]]:
    """Run an example; gives what it printed, by the first word of each line."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(folder / "up.py"), "--port", str(_five_free_ports())),
        env=_environ(),
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    said: dict[str, str] = {}
    try:
        async with asyncio.timeout(START_SECONDS):
            while "ready" not in said:
                line = (await process.stdout.readline()).decode()
                assert line, f"it ended before it was ready: {said}"
                name, _, rest = line.strip().partition(" ")
                said[name] = rest.strip()
        yield process, said
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGTERM)
            await process.wait()


async def answers(said: dict[str, str]) -> tuple[httpx.Response, list[str]]:
    """Ask over REST and over a socket; give the answer of the one and the frames of the other."""
    bearer = {"authorization": f"Bearer {said['token']}"}
    async with httpx.AsyncClient(headers=bearer, timeout=30) as client:
        answer = await client.post(
            f"{said['request-handler']}/api/v1/chat",
            json={"prompt": "What happens when a runner dies?", "session_id": "s1"},
        )
    url = said["gateway"].replace("http", "ws")
    async with connect(f"{url}/ws", additional_headers=bearer) as socket_:
        await socket_.send('{"body": {"prompt": "Which modes are there?", "session_id": "s2"}}')
        return answer, [str(await socket_.recv()), str(await socket_.recv())]


async def printed_by(script: Path, address: str) -> str:
    """Run a script that looks at a broker, and give what it printed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(script), address),
        env=_environ(),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode()


async def stopped(process: asyncio.subprocess.Process) -> int:
    """Do what Ctrl-C in a terminal does; give the exit code."""
    os.killpg(process.pid, signal.SIGINT)
    async with asyncio.timeout(END_SECONDS):
        return await process.wait()


def _environ() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def _five_free_ports() -> int:
    """Give the first of five ports in a row that were free a moment ago."""
    for first in range(20_000, 30_000, 5):
        held = [socket.socket() for _ in range(5)]
        try:
            for offset, probe in enumerate(held):
                probe.bind(("127.0.0.1", first + offset))
            return first
        except OSError:
            continue
        finally:
            for probe in held:
                probe.close()
    raise RuntimeError("no five free ports in a row")
