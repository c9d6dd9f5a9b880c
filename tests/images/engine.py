"""A Docker engine for tests: the one that DOCKER_HOST names, or one started here and ended after.

The engine started here lives in namespaces of its own: bridges, packet filters, mounts and
containers are seen by nobody else, and end with it.  Its published ports are reached by `port_of`.
Needs root and the package docker.io; a test whose machine lacks them is skipped with the reason.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from images.port_relay import PortRelay
from turnline.testing.servers.process import end

START_SECONDS = 60.0
STOP_SECONDS = 20.0
COMMAND_SECONDS = 240.0
_PROGRAMS = ("docker", "dockerd", "ip", "iptables", "setpriv", "unshare")
_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
# Layers are written several times over while an image is built, so in memory: the product's six
# images with what they were made of are 2 GB, and it is used as it is needed.
_START = 'ip link set lo up && mount -t tmpfs -o size=6g tmpfs "$0" && exec dockerd "$@"'


class DockerError(Exception):
    """A command of `docker` failed; the text is what it wrote."""


class DockerEngine:
    """An engine that answers.

    Args:
        host: as in DOCKER_HOST.
        namespace: file of the network namespace in which its ports are published; None: this one.
    """

    def __init__(self, host: str, namespace: Path | None = None) -> None:
        self.host = host
        self._namespace = namespace

    def docker(
        self,
        *arguments: str,
        environ: Mapping[str, str] | None = None,
        stdin: Path | None = None,
        within: float = COMMAND_SECONDS,
    ) -> str:
        """Run `docker`; give what it printed, on either stream.

        Raises:
            DockerError: it failed.
        """
        return self.run(["docker", *arguments], environ=environ, stdin=stdin, within=within)

    def run(
        self,
        command: list[str],
        *,
        environ: Mapping[str, str] | None = None,
        stdin: Path | None = None,
        within: float = COMMAND_SECONDS,
    ) -> str:
        """Do the same for any program that speaks to the engine."""
        with (stdin or Path(os.devnull)).open("rb") as source:
            ended = subprocess.run(
                command,
                env={**os.environ, "PATH": _PATH, **(environ or {}), "DOCKER_HOST": self.host},
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=within,
                check=False,
            )
        out = ended.stdout.decode(errors="replace").strip()
        if ended.returncode:
            raise DockerError(f"{' '.join(command)} ended with {ended.returncode}:\n{out}")
        return out

    @contextmanager
    def port_of(self, published: int) -> Iterator[int]:
        """Give the port on this machine's loopback that leads to a published one."""
        if self._namespace is None:
            yield published
            return
        with socket.create_server(("127.0.0.1", 0)) as door:
            relay = PortRelay(door, self._namespace, published)
            relay.start()
            try:
                yield int(door.getsockname()[1])
            finally:
                relay.stop()


@contextmanager
def running_engine() -> Iterator[DockerEngine]:
    """Give an engine for the length of the block; skips the test where none can run."""
    given = os.environ.get("DOCKER_HOST", "")
    if given and shutil.which("docker") and _answers(engine := DockerEngine(given)):
        yield engine
        return
    if os.geteuid() != 0:
        pytest.skip("no Docker engine: DOCKER_HOST names none, and to start one takes root")
    if missing := [name for name in _PROGRAMS if shutil.which(name, path=_PATH) is None]:
        pytest.skip(f"no Docker engine: {', '.join(missing)} missing, install docker.io")
    folder = Path(tempfile.mkdtemp(prefix="turnline-docker-"))
    try:
        with _own_engine(folder) as engine:
            yield engine
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _own_engine(folder: Path) -> Iterator[DockerEngine]:
    data = folder / "data"
    data.mkdir()
    with (folder / "log").open("wb") as log:
        # Whatever ends this process or `unshare` ends all that the namespaces hold.
        process = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--pid"),
                *("--fork", "--kill-child", "--mount-proc"),
                *("sh", "-c", _START, str(data), "--data-root", str(data)),
                *("--exec-root", str(folder / "exec"), "--pidfile", str(folder / "pid")),
                *("--host", f"unix://{folder}/docker.sock"),
            ],
            env={**os.environ, "PATH": _PATH},
            stdout=log,
            stderr=log,
            process_group=0,
        )
    engine = DockerEngine(f"unix://{folder}/docker.sock", Path(f"/proc/{process.pid}/ns/net"))
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(engine):
            if process.poll() is not None or time.monotonic() > deadline:
                told = (folder / "log").read_text(errors="replace")[-2000:]
                pytest.skip(f"no Docker engine: dockerd does not start here:\n{told}")
            threading.Event().wait(0.1)
        yield engine
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Let dockerd end its containers, for which it takes ten seconds at most."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    for pid in children.read_text().split() if children.exists() else []:
        os.kill(int(pid), signal.SIGTERM)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        end(process, signal.SIGKILL, within=STOP_SECONDS)


def _answers(engine: DockerEngine) -> bool:
    try:
        engine.docker("version", "--format", "{{.Server.Version}}", within=10)
    except (DockerError, subprocess.TimeoutExpired):
        return False
    return True
