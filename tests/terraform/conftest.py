"""The modules, copied to where Terraform may write."""

import shutil
from pathlib import Path

import pytest

from terraform.workspace import Workspace
from turnline.testing.missing import missing


@pytest.fixture(scope="session")
def terraform() -> str:
    found = shutil.which("terraform")
    if found is None:
        missing("no terraform on PATH: the modules are not checked (1.9 or newer is needed)")
    return found


@pytest.fixture(scope="session")
def workspace(terraform: str, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder: Path = tmp_path_factory.mktemp("terraform")
    return Workspace(folder, terraform)
