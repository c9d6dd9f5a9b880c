"""Turnline as a real child process: started, awaited, signalled, and read to its end.

A child listens on port 0 and says in its log which port that became, so no two tests meet on one.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from turnline.testing.servers.process import end_with_parent

APPS = Path(__file__).parent / "apps"
ADMIN_TOKEN = "admin-token-of-these-tests"

START_SECONDS = 40.0
END_SECONDS = 40.0
CHECK_SECONDS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A process that has ended."""

    code: int
    stdout: str
    stderr: str


@dataclass(slots=True, kw_only=True)
class Server:
    """A running child.

    Attributes:
        directory: its working directory; holds `stdout` and `stderr`.
        port: what it listens on; 0 until it is ready.
    """

    process: asyncio.subprocess.Process
    directory: Path
    port: int = 0

    @property
    def url(self) -> str:
        """Its HTTP address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def grpc_port(self) -> int:
        """What it listens on for gRPC, where its settings ask for that."""
        port: int = self.events("server.listening")[-1]["port"]
        return port

    @property
    def ws_url(self) -> str:
        """Its WebSocket address."""
        return f"ws://127.0.0.1:{self.port}"

    @property
    def stdout(self) -> str:
        """What it has printed."""
        return (self.directory / "stdout").read_text()

    @property
    def stderr(self) -> str:
        """What it has logged."""
        return (self.directory / "stderr").read_text()

    def client(self) -> httpx.AsyncClient:
        """Make an HTTP client for it, without limits that a burst of callers would meet."""
        limits = httpx.Limits(max_connections=None)
        return httpx.AsyncClient(base_url=self.url, timeout=END_SECONDS, limits=limits)

    def events(self, name: str) -> list[dict[str, Any]]:
        """Give the log lines of one event."""
        lines = (line for line in self.stderr.splitlines() if line.startswith("{"))
        return [entry for line in lines if (entry := _entry(line)).get("event") == name]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to this process alone."""
        os.kill(self.process.pid, number)

    async def kill(self) -> None:
        """End it on the spot, with what it started; nothing if it has ended."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        await self.process.wait()

    async def ended(self, *, within: float = END_SECONDS) -> Ended:
        """Wait for its end."""
        async with asyncio.timeout(within):
            code = await self.process.wait()
        return Ended(code=code, stdout=self.stdout, stderr=self.stderr)

    async def queues(self) -> dict[str, dict[str, float]]:
        """Ask for the depths of its queues."""
        headers = {"authorization": f"Bearer {ADMIN_TOKEN}"}
        async with self.client() as client:
            answer = await client.get("/admin/queues", headers=headers)
        answer.raise_for_status()
        depths: dict[str, dict[str, float]] = answer.json()
        return depths

    async def has_queued(self, *, running: int, waiting: int) -> None:
        """Wait until so many turns run and so many wait."""
        async with asyncio.timeout(END_SECONDS):
            while True:
                depth = (await self.queues())["input"]
                if (depth["in_flight"], depth["waiting"]) == (running, waiting):
                    return
                await asyncio.sleep(CHECK_SECONDS)

    async def is_ready(self) -> None:
        """Wait until it says that it is, or fail with what it logged."""
        async with asyncio.timeout(START_SECONDS):
            while not (lines := self.events("process.ready")):
                await self._runs_on()
            self.port = lines[-1]["port"]
            while not await self._says_ready():
                await self._runs_on()

    async def _runs_on(self) -> None:
        await asyncio.sleep(CHECK_SECONDS)
        if self.process.returncode is not None:
            raise AssertionError(f"ended with {self.process.returncode}: {self.stderr}")

    async def _says_ready(self) -> bool:
        async with self.client() as client:
            try:
                return (await client.get("/ready")).status_code == 200
            except httpx.HTTPError:
                return False

    async def is_draining(self) -> None:
        """Wait until it says that it drains."""
        async with asyncio.timeout(END_SECONDS):
            while not self.events("process.draining"):  # noqa: ASYNC110 - told by a file only
                await asyncio.sleep(CHECK_SECONDS)


def _entry(line: str) -> dict[str, Any]:
    try:
        entry: dict[str, Any] = json.loads(line)
    except ValueError:
        return {}  # half of a line that is being written
    return entry


def environment(settings: Mapping[str, str] | None = None) -> dict[str, str]:
    """Make the environment of a child: imports as here, loopback, any port, and `settings`."""
    return {
        "PATH": os.environ.get("PATH", ""),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONUNBUFFERED": "1",
        "AK_API__HOST": "127.0.0.1",
        "AK_API__PORT": "0",
        "AK_API__ADMIN_TOKEN": ADMIN_TOKEN,
        **(settings or {}),
    }


async def launched(
    directory: Path, *args: str, settings: Mapping[str, str] | None = None, stdin: bytes = b""
) -> Server:
    """Start Python with `args`; whoever starts it ends it, with `Server.kill` at the latest.

    It leads a process group of its own, so that a signal to it reaches nobody else, and ends with
    this process.
    """
    _prepare(directory, stdin)
    with (
        (directory / "stdin").open("rb") as source,
        (directory / "stdout").open("wb") as out,
        (directory / "stderr").open("wb") as err,
    ):
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *args,
            cwd=directory,
            env=environment(settings),
            stdin=source,
            stdout=out,
            stderr=err,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
    return Server(process=process, directory=directory)


@asynccontextmanager
async def spawned(
    directory: Path, *args: str, settings: Mapping[str, str] | None = None, stdin: bytes = b""
) -> AsyncIterator[Server]:
    """Run Python with `args` for the length of the block, then kill what is left of it."""
    server = await launched(directory, *args, settings=settings, stdin=stdin)
    try:
        yield server
    finally:
        await server.kill()


def _prepare(directory: Path, stdin: bytes) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "stdin").write_bytes(stdin)


@asynccontextmanager
async def serving(
    directory: Path, *args: str, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Server]:
    """Like `spawned`, with the block entered when the server is ready."""
    async with spawned(directory, *args, settings=settings) as server:
        await server.is_ready()
        yield server


def dev(file: Path = APPS / "e2e_agents.py", *more: str) -> tuple[str, ...]:
    """Give the arguments of `turnline dev` for a file of agents."""
    return (*cli("dev", "--no-reload", "--port", "0"), *more, str(file))


def cli(*args: str) -> tuple[str, ...]:
    """Give the arguments of a `turnline` command."""
    return ("-m", "turnline.cli.main", *args)


async def run(
    directory: Path,
    *args: str,
    settings: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    within: float = END_SECONDS,
) -> Ended:
    """Run Python with `args` to its end."""
    async with spawned(directory, *args, settings=settings, stdin=stdin) as process:
        return await process.ended(within=within)
