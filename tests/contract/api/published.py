"""The JSON Schema that the AsyncAPI project publishes, fetched once by npm.

It lies below `~/.cache/turnline`, in a folder named after the pinned versions; npm checks hashes.
A test whose machine lacks npm, or whose npm can't fetch, is skipped with the reason.
"""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

PINNED = Path(__file__).with_name("asyncapi_specs")

_FETCH_SECONDS = 60.0


def asyncapi_schema(version: str) -> dict[str, Any]:
    """Give the schema of documents of a version of AsyncAPI; skips the test where it can't."""
    specs = _folder() / "node_modules/@asyncapi/specs/schemas"
    found: dict[str, Any] = json.loads((specs / f"{version}-without-$id.json").read_text())
    return found


def _folder() -> Path:
    pinned = hashlib.sha256((PINNED / "package-lock.json").read_bytes()).hexdigest()[:12]
    folder = Path.home() / ".cache/turnline" / f"asyncapi-specs-{pinned}"
    if not folder.is_dir():
        _fetch(folder)
    return folder


def _fetch(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm here to fetch the schema of AsyncAPI with: install Node.js")
    folder.parent.mkdir(parents=True, exist_ok=True)
    half = Path(mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    shutil.copytree(PINNED, half, dirs_exist_ok=True)
    asked = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        told = subprocess.run(
            asked, cwd=half, capture_output=True, text=True, check=False, timeout=_FETCH_SECONDS
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not fetch the schema of AsyncAPI within {_FETCH_SECONDS:g} s")
    if told.returncode:
        pytest.skip(f"npm can't fetch the schema of AsyncAPI:\n{told.stderr[-2000:]}")
    try:
        half.rename(folder)
    except OSError:  # another test was faster
        shutil.rmtree(half)
