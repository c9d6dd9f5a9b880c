"""Finds what a Kafka broker needs: Java 17 or newer, and its jars, fetched once by Maven.

The jars lie below `~/.cache/turnline`, in a folder named after the versions that `kafka-pom.xml`
pins; Maven checks them against the repository's checksums.  A test whose machine lacks Java or
Maven is skipped with the reason.
"""

import fcntl
import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

_OLDEST_JAVA = 17
_FETCH_SECONDS = 280.0
_POM = Path(__file__).with_name("kafka-pom.xml")
_JAVA_VERSION = re.compile(r'version "(\d+)')


@cache
def find_java() -> str:
    """Give the path of a Java that runs the broker; skips the test where there is none."""
    found = shutil.which("java") or shutil.which("java", path="/usr/bin:/usr/local/bin")
    if found is None:
        pytest.skip(f"no Java here: install Java {_OLDEST_JAVA} or newer")
    told = subprocess.run([found, "-version"], capture_output=True, text=True, check=False)
    version = _JAVA_VERSION.search(told.stderr + told.stdout)
    if version is None or int(version[1]) < _OLDEST_JAVA:
        pytest.skip(f"{found} is no Java {_OLDEST_JAVA} or newer: install one")
    return found


@cache
def kafka_jars() -> Path:
    """Give the folder of the broker's jars, fetching them at the first call on a machine."""
    folder = cache_folder() / "jars"
    if not folder.is_dir():
        with locked("jars"):
            if not folder.is_dir():
                _fetch(folder)
    return folder


def cache_folder() -> Path:
    """Give the folder of what belongs to the pinned versions."""
    pinned = hashlib.sha256(_POM.read_bytes()).hexdigest()[:12]
    folder = Path.home() / ".cache" / "turnline" / f"kafka-{pinned}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Keep other processes out of the same block; ends with the process too."""
    with (cache_folder() / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(folder: Path) -> None:
    maven = shutil.which("mvn") or shutil.which("mvn", path="/usr/bin:/usr/local/bin")
    if maven is None:
        pytest.skip("no Maven here to fetch the Kafka broker with: install mvn")
    half = folder.with_name("jars.part")
    shutil.rmtree(half, ignore_errors=True)
    asked = [
        *(maven, "-q", "-B", "-C", "-f", str(_POM), "dependency:copy-dependencies"),
        *(f"-DoutputDirectory={half}", "-DincludeScope=runtime"),
    ]
    try:
        told = subprocess.run(
            asked, capture_output=True, text=True, check=False, timeout=_FETCH_SECONDS
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"Maven did not fetch the Kafka broker within {_FETCH_SECONDS:g} s")
    if told.returncode:
        pytest.skip(f"Maven can't fetch the Kafka broker:\n{(told.stdout + told.stderr)[-2000:]}")
    half.rename(folder)
