"""What is rendered is taken by Kubernetes, by the operators and by the services themselves."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from helm.chart import CHART, Object, Release, cases, container_of, pod_of, run_helm
from helm.published import faults_of
from turnline.config import Topology, load_settings, topology_faults
from turnline.config.settings import Settings

ALL = sorted(cases())
SECRET = "0123456789abcdef0123456789abcdef"
TOPOLOGIES = {
    "agent-runner": Topology.RUNNER,
    "io-handler": Topology.IO_HANDLER,
    "push-endpoint": Topology.PUSH_ENDPOINT,
    "request-handler": Topology.REQUEST_HANDLER,
    "responder": Topology.RESPONDER,
    "scaler": Topology.SCALER,
    "ws-gateway": Topology.GATEWAY,
}


def settings_of(release: Release, workload: Object, folder: Path) -> Settings:
    """Load what a container would, with a secret of some text in each mounted file."""
    config, secrets = folder / "config.yaml", folder / "secrets"
    config.write_text(release.one("ConfigMap", "")["data"]["config.yaml"])
    secrets.mkdir(exist_ok=True)
    for volume in pod_of(workload)["volumes"]:
        for source in volume.get("projected", {}).get("sources", ()):
            for item in source["secret"]["items"]:
                (secrets / item["path"]).write_text(SECRET)
    paths = {"AK_CONFIG_PATH_OVERRIDE": str(config), "AK_SECRETS_PATH": str(secrets)}
    given = {each["name"]: each.get("value", "") for each in container_of(workload)["env"]}
    assert paths.keys() <= given.keys()
    return load_settings(environ=given | paths, cwd=folder).settings


@pytest.mark.parametrize("case", ALL)
def test_helm_finds_nothing_to_blame(case: str) -> None:
    run_helm("lint", "--strict", str(CHART), values=cases()[case])


@pytest.mark.parametrize("case", ALL)
def test_published_schemas_allow_every_object(case: str, releases: Mapping[str, Release]) -> None:
    found = [fault for each in releases[case].objects for fault in faults_of(each)]

    assert not found


@pytest.mark.parametrize(
    "spoiled",
    [
        {"spec": {"replicas": "two"}},
        {"spec": {"replica": 2}},
        {"metadata": {"label": {}}},
    ],
)
def test_published_schemas_refuse_what_they_do_not_know(
    spoiled: dict[str, Any], releases: Mapping[str, Release]
) -> None:
    for kind in ("Deployment", "KafkaTopic"):
        case = "baremetal-kafka"
        each, *_ = releases[case].all(kind)
        wrong = {**each, **{key: {**each[key], **part} for key, part in spoiled.items()}}

        assert faults_of(wrong)


@pytest.mark.parametrize("case", ALL)
def test_every_part_takes_its_settings_and_can_start_with_them(
    case: str, releases: Mapping[str, Release], tmp_path: Path
) -> None:
    release = releases[case]
    for name, workload in release.parts.items():
        settings = settings_of(release, workload, tmp_path)

        assert topology_faults(settings, topology=TOPOLOGIES[name]) == ()


@pytest.mark.parametrize("case", ALL)
def test_no_name_is_used_twice(case: str, releases: Mapping[str, Release]) -> None:
    names = [(each["kind"], each["metadata"]["name"]) for each in releases[case].objects]

    assert len(names) == len(set(names))


@pytest.mark.parametrize("case", ALL)
def test_whatever_is_mounted_or_called_is_there(case: str, releases: Mapping[str, Release]) -> None:
    release = releases[case]
    services = {each["metadata"]["name"]: each for each in release.all("Service")}
    for ingress in release.all("Ingress"):
        for path in ingress["spec"]["rules"][0]["http"]["paths"]:
            called = path["backend"]["service"]
            ports = services[called["name"]]["spec"]["ports"]
            assert called["port"]["name"] in [port["name"] for port in ports]
    for workload in release.parts.values():
        ports = {port["name"] for port in container_of(workload)["ports"]}
        labels = workload["spec"]["template"]["metadata"]["labels"]
        (service,) = [
            each for each in services.values() if each["spec"]["selector"].items() <= labels.items()
        ]
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
