"""Emulators of DynamoDB on random loopback ports, which can be killed, paused and started again.

Two, because each lacks something: moto has transactions and TTL settings, and is made atomic by a
lock of ours; dynalite (https://github.com/architect/dynalite) is atomic by itself, and has neither.
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from turnline.testing.missing import missing
from turnline.testing.servers.npm_packages import find_node, npm_packages
from turnline.testing.servers.process import end, free_ports, freeze

_START_SECONDS = 90.0
_LOOK_SECONDS = 0.05
_PORT_TRIES = 5

# A child finds modules where this process does, whatever its environment.
_MOTO = (
    "import sys; sys.path[:] = {path!r}; "
    "from turnline.testing.servers.dynamodb_process import main; main()"
)
_PINNED = Path(__file__).with_name("dynalite_packages")
_DYNALITE = (
    "require({package})({{createTableMs: 0, deleteTableMs: 0, updateTableMs: 0}})"
    ".listen(Number(process.argv[1]), '127.0.0.1')"
)


class DynamoDbServer:
    """One emulator in a process of its own; what it holds ends with it.

    Args:
        command: what starts it; the port is added as its last argument.
        folder: where it runs and writes its log.

    Attributes:
        port: stays the same over `restart`.
    """

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._command = tuple(command)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

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

    def kill(self) -> None:
        """End it at once."""
        process, self._process = self._process, None
        if process is not None:
            end(process, signal.SIGKILL, within=_START_SECONDS)

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
        with self._log.open("ab") as log:
            # In a group of its own: Ctrl-C in a terminal reaches whoever uses it first.
            self._process = subprocess.Popen(
                (*self._command, str(self.port)),
                cwd=self._folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
            )

    def _answers(self) -> bool:
        finish = time.monotonic() + _START_SECONDS
        while time.monotonic() < finish:
            try:
                with urllib.request.urlopen(self.url, timeout=1.0):
                    return True
            except urllib.error.HTTPError:
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


@contextmanager
def running_dynamodb() -> Iterator[DynamoDbServer]:
    """Run moto behind a lock for the length of the block; skips the test where it is missing."""
    if find_spec("moto") is None:
        missing("no emulator of DynamoDB: moto[dynamodb] is not installed")
    with _running((sys.executable, "-c", _MOTO.format(path=sys.path))) as server:
        yield server


@contextmanager
def running_dynalite() -> Iterator[DynamoDbServer]:
    """Run dynalite for the length of the block; skips the test where there is no Node.js."""
    node = find_node()
    code = _DYNALITE.format(package=json.dumps(str(npm_packages("dynalite", _PINNED) / "dynalite")))
    with _running((node, "-e", code)) as server:
        yield server


@contextmanager
def _running(command: Sequence[str]) -> Iterator[DynamoDbServer]:
    with tempfile.TemporaryDirectory(prefix="dynamodb-") as folder:
        server = DynamoDbServer(command, Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.kill()
