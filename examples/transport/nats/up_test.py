"""The example does what its README says, and its containers would too."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from click.testing import CliRunner
from websockets.asyncio.client import connect

from turnline.cli.main import main
from turnline.cli.serve import SERVICES

HERE = Path(__file__).absolute().parent
START_SECONDS = 60.0
END_SECONDS = 40.0


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


@asynccontextmanager
async def _up(port: int) -> AsyncIterator[tuple[asyncio.subprocess.Process, dict[str, str]]]:
    """Run the example; gives what it printed, by the first word of each line."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(HERE / "up.py"), "--port", str(port)),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
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


async def test_it_answers_over_rest_and_a_socket_and_leaves_nothing_behind() -> None:
    port = _five_free_ports()
    async with _up(port) as (process, said):
        bearer = {"authorization": f"Bearer {said['token']}"}
        async with httpx.AsyncClient(headers=bearer, timeout=30) as client:
            answer = await client.post(
                f"{said['request-handler']}/api/v1/chat",
                json={"prompt": "What happens when a runner dies?", "session_id": "s1"},
            )
        url = said["gateway"].replace("http", "ws")
        async with connect(f"{url}/ws", additional_headers=bearer) as socket_:
            await socket_.send('{"body": {"prompt": "Which modes are there?", "session_id": "s2"}}')
            frames = [await socket_.recv(), await socket_.recv()]
        streams = await _streams(said["nats"])
        os.killpg(process.pid, signal.SIGINT)  # what Ctrl-C in a terminal does
        async with asyncio.timeout(END_SECONDS):
            code = await process.wait()

    assert answer.status_code == 200
    assert "runner" in answer.json()["result"]
    assert ["CHAT_QUEUED" in str(frames[0]), "CHAT_RESPONSE" in str(frames[1])] == [True, True]
    assert streams.count("0 messages") == 4
    assert code == 0


async def _streams(url: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(HERE / "streams.py"), url), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode()


def _compose() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((HERE / "compose.yaml").read_text(encoding="utf-8"))
    return document


def test_the_containers_run_services_that_there_are() -> None:
    commands = [service["command"] for service in _compose()["services"].values()]
    served = {command[2] for command in commands if command[1] == "serve"}

    assert served == set(SERVICES) - {"all"}


def test_the_containers_settings_are_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = _compose()["services"]["gateway"]["environment"]
    monkeypatch.chdir(tmp_path)
    for name, value in given.items():
        monkeypatch.setenv(name, "0123456789abcdef" * 4 if value.startswith("${") else value)
    monkeypatch.setenv("AK_CONFIG_PATH_OVERRIDE", str(HERE / "config.yaml"))

    result = CliRunner().invoke(main, ["config"])

    assert result.exit_code == 0, result.output
