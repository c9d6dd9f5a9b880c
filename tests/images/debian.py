"""Images made of Debian's packages alone, for machines that reach no image registry.

They hold what the named packages need and nothing else: no shell, no package manager's data.  Each
is kept as an archive below `~/.cache/turnline`.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from images.engine import DockerEngine

PYTHON = ("python3.11-minimal", "libpython3.11-stdlib", "libstdc++6", "ca-certificates")
JAVA = ("openjdk-17-jre-headless",)
_SECONDS = 240.0
_CERTIFICATES = "usr/share/ca-certificates/mozilla"
_BUNDLE = "etc/ssl/certs/ca-certificates.crt"


def debian_image(engine: DockerEngine, name: str, packages: tuple[str, ...]) -> str:
    """Make an image of packages and what they depend on; gives its name.

    Skips the test where Debian's packages can't be had.
    """
    engine.docker("import", "-", name, stdin=_archive(packages))
    return name


def _archive(packages: tuple[str, ...]) -> Path:
    named = hashlib.sha256(" ".join(packages).encode()).hexdigest()[:12]
    kept = Path.home() / ".cache" / "turnline" / f"debian-{named}.tar"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with _locked(kept.with_suffix(".lock")):
        if not kept.exists():
            with tempfile.TemporaryDirectory(prefix="turnline-debian-") as folder:
                half = _make(Path(folder), packages, kept.with_suffix(".part"))
            half.rename(kept)
    return kept


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(folder: Path, packages: tuple[str, ...], archive: Path) -> Path:
    if missing := [name for name in ("apt-get", "dpkg-deb") if shutil.which(name) is None]:
        pytest.skip(
            f"no base image: no {' and '.join(missing)} here, it is made of Debian's packages"
        )
    root = folder / "root"
    root.mkdir()
    for package in sorted(_download(folder, packages).glob("*.deb")):
        subprocess.run(["dpkg-deb", "--extract", str(package), str(root)], check=True)
    _finish(root)
    with tarfile.open(archive, "w") as tar:
        tar.add(root, ".")
    return archive


def _download(folder: Path, packages: tuple[str, ...]) -> Path:
    """Fetch packages as if nothing were installed, by the lists of this machine or newer ones."""
    archives = folder / "archives"
    (archives / "partial").mkdir(parents=True)
    (folder / "lists" / "partial").mkdir(parents=True)
    (folder / "status").touch()
    options = [
        f"Dir::State::status={folder}/status",
        f"Dir::State::lists={folder}/lists",
        f"Dir::Cache::archives={archives}",
        "Dir::Cache::pkgcache=",
        "Dir::Cache::srcpkgcache=",
        "APT::Sandbox::User=root",
    ]
    apt = ["apt-get", "-qq", "-y", *(f"-o{option}" for option in options)]
    for command in (
        ["update"],
        ["--no-install-recommends", "--download-only", "install", *packages],
    ):
        told = subprocess.run(
            [*apt, *command],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        if told.returncode:
            pytest.skip(f"no base image: apt-get {command[0]} failed:\n{told.stderr[-2000:]}")
    return archives


def _finish(root: Path) -> None:
    """Do what the packages' own scripts would have done, as far as it is needed."""
    for name in ("tmp", "root", "proc", "sys", "dev"):
        (root / name).mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)
    if (root / "usr/bin/python3.11").exists():
        (root / "usr/bin/python3").symlink_to("python3.11")
    if (root / _CERTIFICATES).is_dir():
        bundle = root / _BUNDLE
        bundle.parent.mkdir(parents=True, exist_ok=True)
        parts = sorted((root / _CERTIFICATES).glob("*.crt"))
        bundle.write_bytes(b"".join(part.read_bytes() for part in parts))
