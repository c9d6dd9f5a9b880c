"""The tests that the modules have in Terraform's own language."""

import pytest

from terraform.workspace import Workspace, modules_with_tests


@pytest.mark.parametrize("module", modules_with_tests())
def test_a_modules_own_tests_pass(module: str, workspace: Workspace) -> None:
    ended = workspace.test(module).ended

    [summary] = [
        message["test_summary"] for message in ended.messages if message["type"] == "test_summary"
    ]
    assert summary["status"] == "pass", ended.said
    assert summary["passed"] > 0
    assert ended.code == 0
