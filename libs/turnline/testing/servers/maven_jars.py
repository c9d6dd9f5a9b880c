"""Finds what servers on the JVM need: Java 17 or newer, and their jars, fetched once by Maven.

The jars lie below `~/.cache/turnline`, in a folder named after the versions that a pom file pins;
Maven checks them against the repository's checksums.  A test whose machine lacks Java or Maven is
skipped with the reason, and fails in CI.
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

from turnline.testing.missing import missing

_OLDEST_JAVA = 17
_FETCH_SECONDS = 280.0
_JAVA_VERSION = re.compile(r'version "(\d+)')


@cache
def find_java() -> str:
    """Give the path of a Java that runs the servers; skips the test where there is none."""
    found = shutil.which("java") or shutil.which("java", path="/usr/bin:/usr/local/bin")
    if found is None:
        missing(f"no Java here: install Java {_OLDEST_JAVA} or newer")
    told = subprocess.run([found, "-version"], capture_output=True, text=True, check=False)
    version = _JAVA_VERSION.search(told.stderr + told.stdout)
    if version is None or int(version[1]) < _OLDEST_JAVA:
        missing(f"{found} is no Java {_OLDEST_JAVA} or newer: install one")
    return found


class MavenJars:
    """The jars that a pom file beside this one names.

    Args:
        server: what they are, for the folder's name and for people.
        pom: the file's name.
    """

    def __init__(self, server: str, pom: str) -> None:
        self._server = server
        self._pom = Path(__file__).with_name(pom)

    def folder(self) -> Path:
        """Give the folder of the jars, fetching them at the first call on a machine."""
        folder = self.cache_folder() / "jars"
        if not folder.is_dir():
            with self.locked("jars"):
                if not folder.is_dir():
                    self._fetch(folder)
        return folder

    def cache_folder(self) -> Path:
        """Give the folder of what belongs to the pinned versions."""
        pinned = hashlib.sha256(self._pom.read_bytes()).hexdigest()[:12]
        folder = Path.home() / ".cache" / "turnline" / f"{self._server}-{pinned}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Keep other processes out of the same block; ends with the process too."""
        with (self.cache_folder() / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _fetch(self, folder: Path) -> None:
        maven = shutil.which("mvn") or shutil.which("mvn", path="/usr/bin:/usr/local/bin")
        if maven is None:
            missing(f"no Maven here to fetch {self._server} with: install mvn")
        half = folder.with_name("jars.part")
        shutil.rmtree(half, ignore_errors=True)
        asked = [
            *(maven, "-q", "-B", "-C", "-f", str(self._pom), "dependency:copy-dependencies"),
            *(f"-DoutputDirectory={half}", "-DincludeScope=runtime"),
        ]
        try:
            told = subprocess.run(
                asked, capture_output=True, text=True, check=False, timeout=_FETCH_SECONDS
            )
        except subprocess.TimeoutExpired:
            missing(f"Maven did not fetch {self._server} within {_FETCH_SECONDS:g} s")
        if told.returncode:
            text = (told.stdout + told.stderr)[-2000:]
            missing(f"Maven can't fetch {self._server}:\n{text}")
        half.rename(folder)
