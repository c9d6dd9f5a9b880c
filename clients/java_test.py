"""The Java client as its users have it: packed, and tested in a project that asks for it."""

import shutil
from pathlib import Path

import pytest

from clients import build_java
from clients.testing.rig import rig
from clients.testing.runner import need, run_tests

# The first one on a machine waits for Maven's downloads.
pytestmark = pytest.mark.timeout(800)

PASSED = r"^(?:\[INFO\] )?Tests run: (\d+), Failures: 0, Errors: 0"


async def test_the_packed_client_passes_its_tests_in_a_project_of_its_own(tmp_path: Path) -> None:
    need("mvn", "javac")
    packed = build_java.package(tmp_path / "packed")
    project = shutil.copytree(build_java.SOURCES / "client_tests", tmp_path / "project")
    with build_java.downloads() as maven:
        # Maven would keep the client of an earlier run.
        shutil.rmtree(build_java.DOWNLOADS / "dev" / "turnline", ignore_errors=True)
        async with rig(tmp_path) as environment:
            command = [*maven, f"-Dpacked=file://{packed}", "test"]
            await run_tests(command, project, environment, passed=PASSED)
