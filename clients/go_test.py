"""The Go client as its users have it: packed, required by a module of its own, and tested there."""

import json
import shutil
from pathlib import Path

import pytest

from clients import build_go
from clients.building import VERSION, run
from clients.testing.rig import rig
from clients.testing.runner import need, run_tests

# The first one on a machine waits for its compiler.
pytestmark = pytest.mark.timeout(800)


def consumer(folder: Path, proxy: Path) -> Path:
    """Lay a module of tests that has the client as Go itself takes it from the package."""
    fetched = run(
        ["go", "mod", "download", "-json", "-modcacherw", f"{build_go.MODULE}@v{VERSION}"],
        proxy,
        {"GOPROXY": f"file://{proxy}", "GOMODCACHE": str(folder / "modules"), "GONOSUMDB": "*"},
    )
    project = folder / "project"
    shutil.copytree(build_go.SOURCES / "tests", project)
    # Not by its version: the user's cache of modules would keep it, and the next run have it.
    replaced = f"{build_go.MODULE}={json.loads(fetched)['Dir']}"
    run(["go", "mod", "edit", "-replace", replaced], project)
    return project


async def test_the_packed_client_passes_its_tests_in_a_module_of_its_own(tmp_path: Path) -> None:
    need("go")
    project = consumer(tmp_path, build_go.package(tmp_path / "proxy"))

    async with rig(tmp_path) as environment:
        command = ["go", "test", "-v", "-count=1", "./..."]
        await run_tests(command, project, environment, passed="^--- PASS: ")
