"""The modules against the AWS provider's schema, by Terraform itself; and that faults are seen."""

import json
import re
import subprocess

import pytest

from terraform.derive_schema import used
from terraform.workspace import MODULES, SCHEMA, Workspace, examples


def test_files_are_formatted(terraform: str) -> None:
    done = subprocess.run(
        [terraform, f"-chdir={MODULES}", "fmt", "-check", "-diff", "-recursive"],
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("example", examples())
def test_an_example_is_valid_with_all_its_modules(example: str, workspace: Workspace) -> None:
    ended = workspace.validate(example)

    assert ended.code == 0, ended.said


def test_the_schema_holds_what_is_used_and_nothing_else() -> None:
    held = {
        (kind, type_)
        for schema in json.loads(SCHEMA.read_text())["provider_schemas"].values()
        for kind, place in (("resource", "resource_schemas"), ("data", "data_source_schemas"))
        for type_ in schema[place]
    }

    assert held == {(kind, type_) for kind, type_ in used() if kind != "provider"}


def test_modules_ask_for_the_version_they_are_checked_against() -> None:
    schemas = json.loads(SCHEMA.read_text())["provider_schemas"]
    versions = {address.rpartition("/")[2]: of["version"] for address, of in schemas.items()}
    asked = {
        (name, least)
        for file in MODULES.rglob("*.tf")
        for name, least in re.findall(
            r'source  = "hashicorp/(\w+)"\s+version = ">= ([\d.]+), ', file.read_text()
        )
    }

    assert dict(asked) == {name: version.rpartition(".")[0] for name, version in versions.items()}
    assert len(asked) == len(versions)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        pytest.param("no_such = 1", 'An argument named "no_such" is not expected', id="unknown"),
        pytest.param('fifo_queue = "perhaps"', "a bool is required", id="wrong type"),
        pytest.param("dimensions = {}", 'An argument named "dimensions"', id="of another one"),
        pytest.param("redrive_policy { }", "Unsupported block type", id="a block for a text"),
        pytest.param("tags = aws_sqs_queue.this.nothing", "Unsupported attribute", id="reference"),
        pytest.param('arn = "mine"', 'Can\'t configure a value for "arn"', id="computed"),
    ],
)
def test_a_fault_in_a_resource_is_seen(fault: str, said: str, workspace: Workspace) -> None:
    module = workspace.modules / "faulty"
    module.mkdir(exist_ok=True)
    (module / "main.tf").write_text(
        f'resource "aws_sqs_queue" "this" {{}}\nresource "aws_sqs_queue" "that" {{\n{fault}\n}}\n'
    )

    ended = workspace.validate("faulty")

    assert ended.code == 1
    assert said in " ".join(ended.said.split())


def test_a_missing_argument_is_seen(workspace: Workspace) -> None:
    module = workspace.modules / "lacking"
    module.mkdir()
    (module / "main.tf").write_text('resource "aws_dynamodb_table" "this" {}\n')

    ended = workspace.validate("lacking")

    assert 'The argument "name" is required' in ended.said
