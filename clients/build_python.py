"""Packs the Python client: a wheel.  `python -m clients.build_python` renews its committed stubs.

The stubs have a Protobuf package of their own (only names, nothing that travels, depends on it), so
that a process can hold the client and the server's own stubs in any two versions.
"""

import fcntl
import hashlib
import shutil
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

from clients import building
from clients.building import PROTO, ROOT, run

SOURCES = ROOT / "clients" / "python"
WIRE = "turnline_client/_wire"
BACKEND = ROOT / "3rdparty" / "python" / "tools" / "setuptools.lock"
MESSAGES = ("failure", "chat", "chunk", "chat_service")

_PACKAGE = "turnline/v1"
# The first moment a zip file can name.
_EPOCH = {"SOURCE_DATE_EPOCH": "315532800"}


def package(folder: Path) -> Path:
    """Write the wheel into a folder and give its path.

    Raises:
        BuildError: pip or the build backend failed.
    """
    with TemporaryDirectory() as work:
        sources = Path(work) / "client"
        left_out = shutil.ignore_patterns("BUILD", "client_tests", "__pycache__")
        shutil.copytree(SOURCES, sources, ignore=left_out)
        shutil.copy(ROOT / "LICENSE", sources)
        generate(sources)
        wheel = [*pip(), "wheel", "--no-deps", "--no-build-isolation", f"--wheel-dir={work}"]
        run([*wheel, str(sources)], sources, _EPOCH)
        [made] = Path(work).glob("*.whl")
        folder.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(made, folder))


def pip() -> list[str]:
    """Give the command of a pip that has the pinned build backend beside it.

    It lies below `~/.cache/turnline`, in a folder named after the pins, and is made once.

    Raises:
        BuildError: the backend cannot be installed.
    """
    pinned = hashlib.sha256(BACKEND.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = Path.home() / ".cache" / "turnline" / f"wheels-{pinned}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder.with_suffix(".lock").open("w") as lock:
            # Ends with the process too.
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                half = folder.with_suffix(".part")
                venv.create(half, clear=True, with_pip=True)
                run([*_pip_in(half), "install", "--require-hashes", "-r", str(BACKEND)], half)
                half.rename(folder)
    return _pip_in(folder)


def _pip_in(folder: Path) -> list[str]:
    return [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-q"]


def generate(folder: Path) -> None:
    """Write the stubs below a folder.

    Raises:
        BuildError: buf or protoc failed.
    """
    protoc = [sys.executable, "-m", "grpc_tools.protoc"]
    with TemporaryDirectory() as renamed:
        for name in MESSAGES:
            _rename(name, Path(renamed))
        building.generate("python", folder, protoc=protoc, protos=Path(renamed))


def _rename(name: str, folder: Path) -> None:
    text = (PROTO / _PACKAGE / f"{name}.proto").read_text(encoding="utf-8")
    text = text.replace(f"{_PACKAGE}/", f"{WIRE}/")
    text = text.replace(_PACKAGE.replace("/", "."), WIRE.replace("/", "."))
    path = folder / WIRE / f"{name}.proto"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    generate(SOURCES)
