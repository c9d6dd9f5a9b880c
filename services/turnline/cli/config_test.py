"""`turnline config` shows every setting and its origin, and no secret."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from turnline.cli.main import main

SECRET = "a-secret-of-sixteen-or-more"


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AK_API__ADMIN_TOKEN", SECRET)
    yield tmp_path


def test_every_value_has_its_origin(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (directory / "config.yaml").write_text("execution:\n  mode: stream\n")
    monkeypatch.setenv("AK_API__PORT", "8123")

    result = CliRunner().invoke(main, ["config"])

    rows = {row[0]: row[1:] for line in result.output.splitlines() if (row := line.split())}
    assert result.exit_code == 0
    assert rows["execution.mode"] == ["stream", "config.yaml:2"]
    assert rows["api.port"] == ["8123", "env", "AK_API__PORT"]
    assert rows["execution.drain_grace"][-1] == "default"


@pytest.mark.parametrize("options", [[], ["--yaml"]])
def test_secrets_are_not_shown(options: list[str]) -> None:
    result = CliRunner().invoke(main, ["config", *options])

    assert result.exit_code == 0
    assert "admin_token" in result.output
    assert SECRET not in result.output


def test_the_yaml_is_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AK_EXECUTION__MODE", "async")

    result = CliRunner().invoke(main, ["config", "--yaml"])

    assert yaml.safe_load(result.output)["execution"]["mode"] == "async"


def test_the_schema_is_a_json_schema_of_all_blocks() -> None:
    result = CliRunner().invoke(main, ["config", "--schema"])

    schema = json.loads(result.output)
    assert {"execution", "session", "api", "websocket_api", "logging", "telemetry"} <= set(
        schema["properties"]
    )


def test_faults_are_told_with_exit_code_78(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AK_EXECUTION__MODE", "nonsense")
    monkeypatch.setenv("AK_TYPO", "1")

    result = CliRunner().invoke(main, ["config"])

    assert result.exit_code == 78
    assert "AK_EXECUTION__MODE" in result.output
    assert "AK_TYPO" in result.output
