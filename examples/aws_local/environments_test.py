"""Functions and containers here are told what Terraform tells them."""

import re
from pathlib import Path

import pytest

from aws_local.emulators import Emulators, Installation
from aws_local.environments import environments, on_this_machine
from turnline.config import load_settings

MODULE = Path(__file__).absolute().parents[2] / "deploy/terraform/modules/settings"
EMULATORS = Emulators(sqs_url="http://127.0.0.1:1", dynamodb_url="http://127.0.0.1:2")
MADE = Installation(
    mode="stream",
    emulators=EMULATORS,
    input_url="http://127.0.0.1:1/0/input.fifo",
    output_url="http://127.0.0.1:1/0/output.fifo",
    responses="responses",
    sessions="sessions",
    connections="connections",
)


def terraforms_names(service: str) -> set[str]:
    """The variables of one output of the module: those of the locals it merges."""
    locals_ = re.split(r"^  (\w+) += ", (MODULE / "main.tf").read_text(), flags=re.MULTILINE)
    names = {
        name: set(re.findall(r"\bAK_\w+", text))
        for name, text in zip(locals_[1::2], locals_[2::2], strict=True)
    }
    outputs = re.split(r'^output "(\w+)"', (MODULE / "outputs.tf").read_text(), flags=re.MULTILINE)
    merged = dict(zip(outputs[1::2], outputs[2::2], strict=True))[service]
    used = re.findall(r"local\.(\w+)", merged.partition("merge(")[2].partition("\n  )")[0])
    return {name for each in used for name in names.get(each, set())}


@pytest.mark.parametrize(
    ("service", "in_containers"),
    [
        ("request_handler", False),
        ("ws_connection_handler", False),
        ("agent_runner", False),
        ("agent_runner", True),
        ("response_handler", False),
        ("io_handler", True),
    ],
)
def test_a_service_has_the_variables_that_terraform_sets(
    service: str, in_containers: bool, tmp_path: Path
) -> None:
    own = environments(
        MADE, more={}, endpoint_url="http://127.0.0.1:3/live", in_containers=in_containers
    )
    variables = getattr(own, service)
    wanted = terraforms_names(service)
    if not in_containers:
        # Null on Lambda.
        wanted -= {
            "AK_EXECUTION__DRAIN_GRACE",
            "AK_EXECUTION__QUEUES__SQS__VISIBILITY_TIMEOUT",
        }

    assert wanted
    assert set(variables) - set(on_this_machine(EMULATORS)) == wanted
    load_settings(environ=variables, cwd=tmp_path)
