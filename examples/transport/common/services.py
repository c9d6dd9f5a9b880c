"""The five services over a broker and a Valkey that run already: what every example here needs.

An example starts its servers and says in environment variables where they are; the services come
up as processes of their own, like pods, and the objects on the broker are made before.
"""

import asyncio
import os
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import jwt

AGENTS = Path(__file__).parents[2] / "docs_agent" / "agent.py"

# In the order to start them; each listens one port above the one before it.
SERVICES = ("request-handler", "gateway", "responder", "push-endpoint", "runner")
START_SECONDS = 60.0
DRAIN_SECONDS = 30.0
TOKEN_SECONDS = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """What differs between the examples.

    Attributes:
        config: the settings of all services.
        environ: where their servers are, as settings.
        servers: the same for people, by name.
        first_port: of the request handler.
    """

    config: Path
    environ: Mapping[str, str]
    servers: Mapping[str, str]
    first_port: int


def told_to_stop() -> asyncio.Event:
    """Give what Ctrl-C and SIGTERM set from now on."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def valkey_at(url: str) -> dict[str, str]:
    """Give the settings that say where Valkey is."""
    return {"AK_EXECUTION__RESPONSE_STORE__VALKEY__URL": url, "AK_SESSION__VALKEY__URL": url}


async def serve(example: Example, stop: asyncio.Event) -> int:
    """Run the services until told to stop or until one ends; give the exit code."""
    secret, push_token = secrets.token_hex(32), secrets.token_hex(32)
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "AK_CONFIG_PATH_OVERRIDE": str(example.config),
        "AK_API__HOST": "127.0.0.1",
        "AK_AUTH__JWT__SECRET": secret,
        "AK_WEBSOCKET_API__PUSH_AUTH_TOKEN": push_token,
        **example.environ,
    }
    await _provision(environ)
    async with _services(environ, example.first_port) as processes:
        await _ready(example.first_port)
        _tell(example, secret)
        return await _watch(processes, stop)


async def _provision(environ: Mapping[str, str]) -> None:
    """Make what lies on the broker, as an operator would before the first deploy."""
    process = await _turnline(environ, "provision")
    if await process.wait() != 0:
        raise SystemExit("the queues could not be made; see above")


@asynccontextmanager
async def _services(
    environ: Mapping[str, str], first_port: int
) -> AsyncIterator[Sequence[asyncio.subprocess.Process]]:
    processes = []
    try:
        for port, service in enumerate(SERVICES, first_port):
            agents = ("--agents", str(AGENTS)) if service == "runner" else ()
            own = {**environ, "AK_API__PORT": str(port)}
            processes.append(await _turnline(own, "serve", service, *agents))
        yield processes
    finally:
        await _drain(processes)


async def _drain(processes: Sequence[asyncio.subprocess.Process]) -> None:
    running = [process for process in processes if process.returncode is None]
    for process in running:
        process.terminate()
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            for process in running:
                await process.wait()
    except TimeoutError:
        for process in running:
            if process.returncode is None:
                process.kill()


async def _turnline(environ: Mapping[str, str], *arguments: str) -> asyncio.subprocess.Process:
    # In a session of its own: Ctrl-C in the terminal is for us, who then drain in good order.
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "turnline.cli.main", *arguments),
        env=environ,
        start_new_session=True,
    )


async def _ready(first_port: int) -> None:
    async with httpx.AsyncClient() as client, asyncio.timeout(START_SECONDS):
        for port in range(first_port, first_port + len(SERVICES)):
            while not await _says_ready(client, port):  # noqa: ASYNC110 - it tells when asked only
                await asyncio.sleep(0.05)


async def _says_ready(client: httpx.AsyncClient, port: int) -> bool:
    try:
        return (await client.get(f"http://127.0.0.1:{port}/ready")).status_code == 200
    except httpx.TransportError:
        return False


def _tell(example: Example, secret: str) -> None:
    claims = {"userId": "you", "exp": int(time.time()) + TOKEN_SECONDS}
    token = jwt.encode(claims, secret, algorithm="HS256")
    services = {
        service: f"http://127.0.0.1:{port}"
        for port, service in enumerate(SERVICES, example.first_port)
    }
    told = {**services, **example.servers, "token": token}
    print("\n".join([*(f"{name:16} {value}" for name, value in told.items()), "ready"]), flush=True)


async def _watch(processes: Sequence[asyncio.subprocess.Process], stop: asyncio.Event) -> int:
    """Return when told to stop, or with 1 when a process ended by itself."""
    async with asyncio.TaskGroup() as tasks:
        ends = [tasks.create_task(process.wait()) for process in processes]
        told = tasks.create_task(stop.wait())
        await asyncio.wait([told, *ends], return_when=asyncio.FIRST_COMPLETED)
        for task in (told, *ends):
            task.cancel()
    return 0 if stop.is_set() else 1
