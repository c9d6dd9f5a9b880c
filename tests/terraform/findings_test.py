"""Security findings of the modules: none is left, and what is passed over says why beside it."""

from pathlib import Path

import pytest

from terraform import checkov_tool
from terraform.checkov_tool import findings
from terraform.workspace import MODULES

# The first run on a machine installs a hundred packages.
pytestmark = pytest.mark.timeout(580)


def test_no_finding_is_left_in_the_modules() -> None:
    code, said = findings(MODULES)

    assert code == 0, said


def test_a_queue_that_is_not_encrypted_is_found(tmp_path: Path) -> None:
    (tmp_path / "main.tf").write_text('resource "aws_sqs_queue" "this" {\n  name = "plain"\n}\n')
    code, said = findings(tmp_path)

    assert code == 1, said
    assert "CKV_AWS_27" in said


def test_an_install_that_takes_too_long_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(checkov_tool, "INSTALL_SECONDS", 0.001)
    with pytest.raises(pytest.skip.Exception, match="not installed within"):
        findings(MODULES)

    assert list((tmp_path / ".cache" / "turnline").iterdir()) == []
