"""Runs Terraform on a copy of the modules, with a provider that knows the schema alone."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from terraform.schema_provider import attached

ROOT = Path(__file__).parents[2]
MODULES = ROOT / "deploy" / "terraform"
SCHEMA = MODULES / "schema" / "providers.json"
BACKLOG_METRIC = ROOT / "services" / "turnline" / "backlog_metric"
RUN_SECONDS = 100.0
# The runs in which there are no queues, over sockets and over REST.
DIRECT, DIRECT_REST = DIRECT_RUNS = ("direct", "direct_rest")
# Of each stack and such run, the service that has all of the work.
DIRECT_SERVICES = (
    ("containerized", DIRECT, "io_handler"),
    ("containerized", DIRECT_REST, "io_handler"),
    ("serverless", DIRECT, "ws_connection_handler"),
    ("serverless", DIRECT_REST, "request_handler"),
)


@dataclass(frozen=True)
class Ended:
    """How a run of Terraform ended.

    Attributes:
        code: 0 is success.
        output: what it said.
        errors: what it complained of, where not in the output.
    """

    code: int
    output: str
    errors: str

    @property
    def said(self) -> str:
        """What it said, in words."""
        lines = [
            message.get("@message", "") + json.dumps(message.get("diagnostic", {}), indent=1)
            for message in self.messages
            if message["@level"] != "info"
        ]
        return "\n".join(lines) or self.output + self.errors

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What it said as JSON lines."""
        return [json.loads(line) for line in self.output.splitlines() if line.startswith("{")]


@dataclass(frozen=True)
class Tested:
    """The tests of one module, run.

    Attributes:
        ended: of `terraform test -json -verbose`.
    """

    ended: Ended

    @cached_property
    def states(self) -> dict[str, dict[str, Any]]:
        """What each run that applied would have made, by the run's name."""
        return {
            message["@testrun"]: message["test_state"]
            for message in self.ended.messages
            if message["type"] == "test_state"
        }


def resources(state: Mapping[str, Any], type_: str) -> list[dict[str, Any]]:
    """Give the values of all resources of a type, with their `address`."""
    return [
        {"address": resource["address"], **resource["values"]}
        for resource in _walk(state["root_module"])
        if resource["type"] == type_ and resource["mode"] == "managed"
    ]


def _walk(module: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield from module.get("resources", [])
    for child in module.get("child_modules", []):
        yield from _walk(child)


def modules_with_tests() -> list[str]:
    """Name the folders with tests of Terraform's own."""
    found = {file.parents[1] for file in MODULES.rglob("tests/*.tftest.hcl")}
    return sorted(str(folder.relative_to(MODULES)) for folder in found)


def examples() -> list[str]:
    """Name the examples; together they use every module."""
    return sorted(str(folder.relative_to(MODULES)) for folder in MODULES.glob("*/examples/*"))


class Workspace:
    """A copy of the modules, in which Terraform may write.

    Attributes:
        modules: the copy.
    """

    def __init__(self, folder: Path, terraform: str) -> None:
        self._terraform = terraform
        self._folder = folder
        self._tested: dict[str, Tested] = {}
        self.modules = folder / "deploy" / "terraform"
        leave = shutil.ignore_patterns(".terraform*", "__pycache__")
        shutil.copytree(MODULES, self.modules, ignore=leave)
        metric = folder / BACKLOG_METRIC.relative_to(ROOT)
        shutil.copytree(BACKLOG_METRIC, metric, ignore=leave)

    def run(self, module: str, *command: str) -> Ended:
        """Run one command in a module."""
        empty = self._folder / "terraformrc"
        empty.touch()
        schemas = json.loads(SCHEMA.read_text())["provider_schemas"]
        with attached(schemas) as leads:
            done = subprocess.run(
                [self._terraform, *command],
                capture_output=True,
                cwd=self.modules / module,
                env={
                    "CHECKPOINT_DISABLE": "1",
                    "HOME": str(self._folder),
                    "PATH": os.environ["PATH"],
                    "TF_CLI_CONFIG_FILE": str(empty),
                    "TF_IN_AUTOMATION": "1",
                    **leads,
                },
                text=True,
                timeout=RUN_SECONDS,
            )
        return Ended(done.returncode, done.stdout, done.stderr)

    def validate(self, module: str) -> Ended:
        """Check a module, and those it calls, against the schema."""
        begun = self.run(module, "init", "-backend=false", "-no-color")
        return self.run(module, "validate", "-no-color") if begun.code == 0 else begun

    def test(self, module: str) -> Tested:
        """Run the tests of a module; once, however often it is asked for."""
        if module not in self._tested:
            begun = self.run(module, "init", "-backend=false", "-no-color")
            assert begun.code == 0, begun.said
            self._tested[module] = Tested(self.run(module, "test", "-json", "-verbose"))
        return self._tested[module]
