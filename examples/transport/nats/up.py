"""The NATS topology on this machine, without Docker: NATS, Valkey and the five services.

    ./pants run examples/transport/nats:up

Prints where to reach it and a token for the gateway; Ctrl-C drains the services and stops the
servers, whose data goes with them.
"""

import argparse
import asyncio
import os
import secrets
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import jwt

from turnline.testing.servers.nats import NatsServer
from turnline.testing.servers.valkey import running_valkey

HERE = Path(__file__).parent
AGENTS = HERE.parents[1] / "docs_agent" / "agent.py"

# In the order to start them; each listens one port above the one before it.
SERVICES = ("request-handler", "gateway", "responder", "push-endpoint", "runner")
START_SECONDS = 30.0
DRAIN_SECONDS = 30.0
TOKEN_SECONDS = 86_400


async def main(first_port: int) -> int:
    """Run everything until Ctrl-C or until a part ends; give the exit code."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    secret, push_token = secrets.token_hex(32), secrets.token_hex(32)
    with running_valkey() as valkey:
        async with NatsServer() as nats:
            environ = _environ(nats.url, valkey.url, secret, push_token)
            await _provision(environ)
            async with _services(environ, first_port) as processes:
                await _ready(first_port)
                _tell(first_port, nats.url, valkey.url, secret)
                return await _watch(processes, stop)


def _environ(nats: str, valkey: str, secret: str, push_token: str) -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "AK_CONFIG_PATH_OVERRIDE": str(HERE / "config.yaml"),
        "AK_API__HOST": "127.0.0.1",
        "AK_AUTH__JWT__SECRET": secret,
        "AK_WEBSOCKET_API__PUSH_AUTH_TOKEN": push_token,
        "AK_EXECUTION__QUEUES__NATS__URL": nats,
        "AK_EXECUTION__RESPONSE_STORE__VALKEY__URL": valkey,
        "AK_SESSION__VALKEY__URL": valkey,
    }


async def _provision(environ: Mapping[str, str]) -> None:
    """Make the streams and consumers, as an operator would before the first deploy."""
    process = await _turnline(environ, "provision")
    if await process.wait() != 0:
        raise SystemExit("the streams could not be made; see above")


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


def _tell(first_port: int, nats: str, valkey: str, secret: str) -> None:
    claims = {"userId": "you", "exp": int(time.time()) + TOKEN_SECONDS}
    token = jwt.encode(claims, secret, algorithm="HS256")
    lines = [
        f"{service:16} http://127.0.0.1:{port}" for port, service in enumerate(SERVICES, first_port)
    ]
    lines += [f"{'nats':16} {nats}", f"{'valkey':16} {valkey}", f"{'token':16} {token}", "ready"]
    print("\n".join(lines), flush=True)


async def _watch(processes: Sequence[asyncio.subprocess.Process], stop: asyncio.Event) -> int:
    """Return when told to stop, or with 1 when a process ended by itself."""
    async with asyncio.TaskGroup() as tasks:
        ends = [tasks.create_task(process.wait()) for process in processes]
        told = tasks.create_task(stop.wait())
        await asyncio.wait([told, *ends], return_when=asyncio.FIRST_COMPLETED)
        for task in (told, *ends):
            task.cancel()
    return 0 if stop.is_set() else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000, help="of the request handler")
    sys.exit(asyncio.run(main(parser.parse_args().port)))
