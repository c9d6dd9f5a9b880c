"""The settings of a process: where they come from, and what they must fit."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from turnline.config import Settings, Topology
from turnline.errors import ConfigurationError
from turnline.hosting import check_topology, read_settings
from turnline.telemetry import captured_logs


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AK_API__HOST", raising=False)
    yield tmp_path


HOST = {"AK_API__HOST": "127.0.0.1"}


def test_defaults_stand_where_the_environment_says_nothing() -> None:
    assert read_settings(defaults=HOST).settings.api.host == "127.0.0.1"


@pytest.mark.parametrize("name", ["AK_API__HOST", "ak_api__host"])
def test_the_environment_outranks_defaults_in_any_case(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "10.0.0.1")

    assert read_settings(defaults=HOST).settings.api.host == "10.0.0.1"


def test_an_empty_variable_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AK_API__HOST", "")

    assert read_settings(defaults=HOST).settings.api.host == "127.0.0.1"


@pytest.mark.parametrize("name", ["AK_API__HOST", "ak_api__host"])
def test_overrides_outrank_the_environment(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "10.0.0.1")

    assert read_settings(overrides=HOST).settings.api.host == "127.0.0.1"


def test_a_part_that_cannot_work_is_refused() -> None:
    with pytest.raises(ConfigurationError) as refused:
        check_topology(Settings(), Topology.RUNNER)

    assert "in_memory lives inside one process" in refused.value.faults[0]


def test_what_is_likely_not_meant_is_logged() -> None:
    settings = Settings.model_validate({"execution": {"drain_grace": 60}})

    with captured_logs() as lines:
        check_topology(settings, Topology.SINGLE_PROCESS)

    warnings = [line for line in lines if line["event"] == "config.warning"]
    assert [line["setting"] for line in warnings] == ["execution.drain_grace"]
