"""The TypeScript client as its users have it: packed, installed in a project, and tested there."""

import shutil
from pathlib import Path

import pytest

from clients import build_typescript
from clients.building import run
from clients.testing.rig import rig
from clients.testing.runner import need, run_tests

pytestmark = pytest.mark.timeout(800)


def consumer(folder: Path) -> Path:
    """Lay a project that has the packed client, and compile its tests against its types."""
    project = folder / "project"
    shutil.copytree(build_typescript.SOURCES / "tests", project)
    # The lock of the project names the package, and not what is in it.
    build_typescript.package(project)
    run(build_typescript.NPM_CI, project)
    run(["npx", "--no-install", "tsc"], project)
    return project


async def test_the_packed_client_passes_its_tests_in_a_project_of_its_own(tmp_path: Path) -> None:
    need("npm", "node")
    project = consumer(tmp_path)

    async with rig(tmp_path) as environment:
        tests = sorted(str(path) for path in (project / "dist").glob("*.test.js"))
        command = ["node", "--test", "--test-reporter=spec", *tests]
        await run_tests(command, project, environment, passed=r"^. pass (\d+)$")
