"""The files of deploy/compose as Compose reads them, and the metrics that they ask for."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from images.compose import (
    FOLDER,
    SECRETS,
    Topology,
    alert_expressions,
    compose_program,
    dashboard_expressions,
)
from images.engine import DockerEngine, DockerError
from turnline.telemetry.names import METRICS

# Nobody is asked.
NO_ENGINE = DockerEngine("unix:///nowhere")
LAYERS = (["nats"], ["kafka"], ["sqs"], ["nats", "observability"])
GIVEN = {**SECRETS, "GRAFANA_PASSWORD": "a password"}
EVERY = pytest.mark.parametrize("layers", LAYERS, ids="+".join)
KNOWN = {spec.full_name: {label.name: label for label in spec.labels} for spec in METRICS}


def _topology(layers: list[str], environ: Mapping[str, str] = GIVEN) -> Topology:
    return Topology(NO_ENGINE, layers, environ)


@EVERY
def test_a_topology_fits_the_schema_and_every_service_is_bounded(layers: list[str]) -> None:
    services = _topology(layers).config()["services"]

    unbounded = {
        name
        for name, service in services.items()
        if not {"mem_limit", "cpus", "pids_limit"} <= set(service)
    }
    assert {"gateway", "provision", "push-endpoint", "request-handler"} < set(services)
    assert unbounded == set()


@EVERY
def test_ports_are_open_to_this_machine_alone(layers: list[str]) -> None:
    services = _topology(layers).config()["services"]

    hosts = {port["host_ip"] for service in services.values() for port in service.get("ports", [])}
    assert hosts == {"127.0.0.1"}


@EVERY
def test_what_is_mounted_is_there(layers: list[str]) -> None:
    services = _topology(layers).config()["services"]

    mounts = [each for service in services.values() for each in service.get("volumes", [])]
    missing = [
        each["source"]
        for each in mounts
        if each["type"] == "bind" and not Path(each["source"]).exists()
    ]
    assert missing == []


@pytest.mark.parametrize("secret", sorted(GIVEN))
def test_a_secret_that_is_not_given_is_asked_for_by_name(secret: str) -> None:
    given = {name: value for name, value in GIVEN.items() if name != secret}

    with pytest.raises(DockerError, match=f"required variable {secret} is missing a value"):
        _topology(["nats", "observability"], given).config()


def test_the_schema_refuses_what_compose_does_not_know(tmp_path: Path) -> None:
    wrong = tmp_path / "compose.yaml"
    wrong.write_text("services: {gateway: {image: turnline-gateway, memory_limit: 1g}}")

    with pytest.raises(DockerError, match="memory_limit"):
        NO_ENGINE.run([compose_program(), "--file", str(wrong), "config"])


@pytest.mark.parametrize("expression", [*alert_expressions(), *dashboard_expressions()])
def test_a_metric_that_is_asked_for_is_one_of_turnlines_with_that_label(expression: str) -> None:
    asked = re.findall(r"(turnline_[a-z_]+)(?:\{([^}]*)\})?", expression)

    for name, labels in asked:
        metric = re.sub(r"_(bucket|sum|count)$", "", name)
        assert metric in KNOWN
        for label, value in re.findall(r'([a-z_]+)="([^"]*)"', labels):
            assert KNOWN[metric][label].allows(value)


def test_every_layer_is_in_the_readme() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")

    assert [each.name for each in FOLDER.glob("compose*.yaml") if each.name not in text] == []
