"""Packages of npm that tests use, fetched once.

They lie below `~/.cache/turnline`, in a folder named after the versions that a lock file pins; npm
checks their hashes.  Where they can't be had, the test is skipped with the reason, and fails in CI.
"""

import hashlib
import shutil
import subprocess
from pathlib import Path
from tempfile import mkdtemp

from turnline.testing.missing import missing

_FETCH_SECONDS = 90.0


def find_node() -> str:
    """Give the path of Node.js; skips the test where there is none."""
    found = shutil.which("node") or shutil.which("node", path="/usr/bin:/usr/local/bin")
    if found is None:
        missing("no node on the PATH: install Node.js 20 or newer")
    return found


def npm_packages(name: str, pinned: Path) -> Path:
    """Give the `node_modules` of what a folder pins; fetches them at the first call on a machine.

    Args:
        name: of the folder in the cache, for people.
        pinned: holds `package.json` and `package-lock.json`.
    """
    lock = hashlib.sha256((pinned / "package-lock.json").read_bytes()).hexdigest()[:12]
    folder = Path.home() / ".cache" / "turnline" / f"{name}-{lock}"
    if not folder.is_dir():
        _fetch(pinned, folder)
    return folder / "node_modules"


def _fetch(pinned: Path, folder: Path) -> None:
    npm = shutil.which("npm") or shutil.which("npm", path="/usr/bin:/usr/local/bin")
    if npm is None:
        missing(f"no npm here to fetch {folder.name} with: install it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    half = Path(mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    shutil.copytree(pinned, half, dirs_exist_ok=True)
    asked = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        told = subprocess.run(
            asked, cwd=half, capture_output=True, text=True, check=False, timeout=_FETCH_SECONDS
        )
    except subprocess.TimeoutExpired:
        missing(f"npm did not fetch {folder.name} within {_FETCH_SECONDS:g} s")
    if told.returncode:
        missing(f"npm did not fetch {folder.name}:\n{told.stderr[-2000:]}")
    try:
        half.rename(folder)
    except OSError:  # another test was faster
        shutil.rmtree(half)
