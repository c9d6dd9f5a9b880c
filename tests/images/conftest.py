"""One engine and one set of images for all modules that Pants runs together."""

from collections.abc import Iterator

import pytest

from images.build import build_images
from images.debian import PYTHON, debian_image
from images.engine import DockerEngine, running_engine


@pytest.fixture(scope="session")
def engine() -> Iterator[DockerEngine]:
    """An engine, maybe started for us."""
    with running_engine() as running:
        yield running


@pytest.fixture(scope="session")
def base(engine: DockerEngine) -> str:
    """A Python 3.11 without a shell."""
    return debian_image(engine, "turnline-test/python:3.11", PYTHON)


@pytest.fixture(scope="session")
def images(engine: DockerEngine, base: str) -> DockerEngine:
    """The engine, once it has an image of every service."""
    build_images(engine, base)
    return engine
