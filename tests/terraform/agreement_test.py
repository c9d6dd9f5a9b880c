"""What the modules make and what the code expects are the same."""

from pathlib import Path
from typing import Any

import pytest

from terraform.workspace import Workspace
from turnline.config import load_settings

STACKS = ("serverless",)


def environments(workspace: Workspace, stack: str) -> dict[str, dict[str, str]]:
    """Give the variables of every service in every run, by `run/service`."""
    return {
        f"{run}/{service}": variables
        for run, state in workspace.test(stack).states.items()
        for service, variables in state["outputs"]["environments"]["value"].items()
        if variables is not None
    }


@pytest.mark.parametrize("stack", STACKS)
def test_every_variable_is_a_setting_with_a_value_it_takes(
    stack: str, workspace: Workspace, tmp_path: Path
) -> None:
    found = environments(workspace, stack)

    assert found
    for variables in found.values():
        load_settings(environ=variables, cwd=tmp_path)


@pytest.mark.parametrize("stack", STACKS)
def test_the_application_gives_up_one_delivery_before_sqs(
    stack: str, workspace: Workspace, tmp_path: Path
) -> None:
    for name, variables in environments(workspace, stack).items():
        loaded: Any = load_settings(environ=variables, cwd=tmp_path)
        queues = loaded.settings.execution.queues
        ceilings = workspace.test(stack).states[name.partition("/")[0]]["outputs"]["queues"][
            "value"
        ]

        assert queues.input.max_receive_count < ceilings["input"]["max_receive_count"]
        assert queues.output.max_receive_count < ceilings["output"]["max_receive_count"]
