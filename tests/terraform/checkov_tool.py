"""checkov in an environment of its own, of the pinned packages, made once.

It lies below `~/.cache/turnline`, in a folder named after the versions that a lock file pins; pip
checks their hashes.  Where they can't be had, the test is skipped with the reason, and fails in CI.
"""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import mkdtemp

from turnline.testing.missing import missing

PINNED = Path(__file__).with_name("checkov") / "requirements.lock"
INSTALL_SECONDS = 400.0
RUN_SECONDS = 150.0


def findings(folder: Path) -> tuple[int, str]:
    """Give checkov's exit code for the modules in a folder, 0: nothing found, and what it said."""
    python = _environment() / "bin" / "python"
    ended = subprocess.run(
        [
            *(str(python), "-m", "checkov.main", "--directory", str(folder)),
            *("--framework", "terraform", "--compact", "--quiet", "--skip-download"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=RUN_SECONDS,
    )
    return ended.returncode, ended.stdout + ended.stderr


def _environment() -> Path:
    pinned = hashlib.sha256(PINNED.read_bytes()).hexdigest()[:12]
    folder = Path.home() / ".cache" / "turnline" / f"checkov-{pinned}"
    if not folder.is_dir():
        _make(folder)
    return folder


def _make(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    half = Path(mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    # Not this environment's own interpreter: that one may have no pip to give.
    base = (
        Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    )
    for asked in (
        [str(base), "-m", "venv", str(half)],
        [
            *(str(half / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-compile"),
            *("--require-hashes", "--no-deps", "--requirement", str(PINNED)),
        ],
    ):
        try:
            told = subprocess.run(
                asked, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS
            )
        except subprocess.TimeoutExpired:
            # What it had started may still be writing there.
            shutil.rmtree(half, ignore_errors=True)
            missing(f"checkov is not to be had: not installed within {INSTALL_SECONDS:.0f} s")
        if told.returncode:
            shutil.rmtree(half)
            missing(f"checkov is not to be had:\n{told.stdout[-500:]}{told.stderr[-2000:]}")
    try:
        half.rename(folder)
    except OSError:  # another test was faster
        shutil.rmtree(half)
