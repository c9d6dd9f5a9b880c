"""Builds the product's images from the pexes that Pants made, as deploy/docker/README.md says."""

import shutil
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from images.engine import DockerEngine
from turnline.testing.missing import missing

ROOT = Path(__file__).absolute().parents[2]
DOCKERFILE = ROOT / "deploy" / "docker" / "Dockerfile"
SERVICES = (
    "gateway",
    "push_endpoint",
    "request_handler",
    "responder",
    "runner",
    "scaler",
    "turnline",
)
PYTHON = "/opt/turnline/bin/python"
# As many as there are processors on a small machine.
_AT_ONCE = 2


def image_of(service: str) -> str:
    """Give the image's name, as the README and the compose files have it."""
    return "turnline" if service == "turnline" else f"turnline-{service.replace('_', '-')}"


def build_images(engine: DockerEngine, base: str, services: Iterable[str] = SERVICES) -> None:
    """Build images over a base; skips the test where the pexes were not made."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(lambda service: _build(engine, base, service), services):
            pass


def _build(engine: DockerEngine, base: str, service: str) -> None:
    # The whole repository would do as well; the old builder sends all of the folder it is given.
    with tempfile.TemporaryDirectory(prefix="turnline-image-") as context:
        (Path(context) / "dist").mkdir()
        shutil.copy(_pex(service), Path(context) / "dist")
        engine.docker(
            *("build", "--file", str(DOCKERFILE), "--tag", image_of(service)),
            *("--build-arg", f"BASE={base}", "--build-arg", f"SERVICE={service}", context),
        )


def _pex(service: str) -> Path:
    # Pants puts them where the test starts, `./pants package ::` into dist.
    name = f"{service}.pex"
    found = [path for path in (ROOT / name, ROOT / "dist" / name) if path.exists()]
    if not found:
        missing(f"no {name}: run ./pants package services/::")
    return found[0].resolve()
