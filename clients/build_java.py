"""Packs the Java client: a folder that is a Maven repository, with jar, sources and pom.

What Maven fetches lies below `~/.cache/turnline`, checked against the repository's checksums.
"""

import fcntl
import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from clients.building import ROOT, BuildError, generate, run

SOURCES = ROOT / "clients" / "java"
DOWNLOADS = Path.home() / ".cache" / "turnline" / "maven"

_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
_PROTOBUF_VERSION = re.compile(r"<protobuf.version>(.+)</protobuf.version>")
_SYSTEMS = {"Linux": "linux", "Darwin": "osx"}
_MACHINES = {"x86_64": "x86_64", "aarch64": "aarch_64", "arm64": "aarch_64"}


def package(folder: Path) -> Path:
    """Write the repository and give the folder; what is in it besides is left alone.

    Raises:
        BuildError: Maven or a JDK is missing, or what they were asked to do failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as work:
        sources = Path(work) / "client"
        shutil.copytree(SOURCES, sources, ignore=shutil.ignore_patterns("client_tests", "target"))
        generate("java", sources / "src" / "main" / "java", protoc=[str(_protoc())])
        resources = sources / "src" / "main" / "resources" / "META-INF"
        resources.mkdir(parents=True)
        shutil.copy(ROOT / "LICENSE", resources)
        # Not into the downloads too, where the next build's user would find this one's.
        where = ["-Dmaven.install.skip", f"-DaltDeploymentRepository=packed::file:{folder}"]
        with downloads() as maven:
            run([*maven, "deploy", *where], sources)
    return folder


@contextmanager
def downloads() -> Iterator[list[str]]:
    """Give the command of a Maven that asks nothing and is strict about checksums.

    Its downloads are this block's alone meanwhile: Maven does not share them well.  Ends with the
    process too.
    """
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    with DOWNLOADS.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield ["mvn", "-B", "-C", "-ntp", f"-Dmaven.repo.local={DOWNLOADS}"]


def _protoc() -> Path:
    """Give the protoc of the version that the client's runtime has, fetched at the first call."""
    found = _PROTOBUF_VERSION.search((SOURCES / "pom.xml").read_text(encoding="utf-8"))
    system, machine = _SYSTEMS.get(platform.system()), _MACHINES.get(platform.machine())
    if found is None or system is None or machine is None:
        raise BuildError(f"there is no protoc for {platform.system()} on {platform.machine()}")
    name = f"protoc-{found[1]}-{system}-{machine}.exe"
    path = DOWNLOADS.parent / "protoc" / name
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        artifact = f"com.google.protobuf:protoc:{found[1]}:exe:{system}-{machine}"
        with TemporaryDirectory(dir=path.parent) as half, downloads() as maven:
            copy = [_COPY, f"-Dartifact={artifact}", f"-DoutputDirectory={half}"]
            run([*maven, *copy], path.parent)
            (Path(half) / name).chmod(0o755)
            # Whole at once, also for those who look just now.
            (Path(half) / name).rename(path)
    return path
