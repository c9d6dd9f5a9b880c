"""The system under test as a process of its own, started from a command and found by its port."""

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
START_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server.

    Attributes:
        pid: of the process that serves.
        others: pids of the processes behind it, none if it is the whole system.
        ready_seconds: from its start to the first answer on its health route.
    """

    pid: int
    port: int
    ready_seconds: float
    others: tuple[int, ...] = ()

    def rss_kib(self) -> int:
        """Resident memory now, KiB."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return int(line.split()[1])

    def cpu_seconds(self) -> float:
        """Processor time used so far, by all processes of the system under test."""
        return sum(cpu_seconds_of(pid) for pid in (self.pid, *self.others))


def cpu_seconds_of(pid: int) -> float:
    """Processor time a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2]
    user, kernel = fields.split()[11:13]
    return (int(user) + int(kernel)) / os.sysconf("SC_CLK_TCK")


def free_port() -> int:
    """Give a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def turnline_command() -> list[str]:
    """Give the command that serves the bench agent with every part in one process."""
    return [sys.executable, "-c", "from bench.serve import main; main()"]


@asynccontextmanager
async def running(
    command: Sequence[str],
    environ: Mapping[str, str],
    *,
    cwd: Path | None = None,
    health: str = "/health",
) -> AsyncIterator[Server]:
    """Start a server that reads its port from AK_API__PORT, and stop it in the end.

    Raises:
        RuntimeError: it ended instead of answering; what it said is on stderr.
    """
    port = free_port()
    started = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *command,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "AK_API__HOST": "127.0.0.1",
            "AK_API__PORT": str(port),
            **environ,
        },
        cwd=cwd,
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        await _healthy(process, port, health)
        ready = time.perf_counter() - started
        yield Server(pid=process.pid, port=port, ready_seconds=ready)
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(30):
                await process.wait()
        except TimeoutError:
            process.kill()


async def _healthy(process: asyncio.subprocess.Process, port: int, path: str) -> None:
    request = f"GET {path} HTTP/1.1\r\nhost: bench\r\nconnection: close\r\n\r\n".encode()
    async with asyncio.timeout(START_SECONDS):
        while True:
            if process.returncode is not None:
                raise RuntimeError(f"the server ended with exit code {process.returncode}")
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(request)
                head = await reader.readline()
                writer.close()
                if b" 200 " in head:
                    return
            except OSError:
                pass
            await asyncio.sleep(0.005)
