"""What each part of a release is like: how it is confined, stopped, replaced and watched."""

from collections.abc import Mapping
from typing import Any

import pytest

from helm.chart import AGENTS, JWT, Release, cases, container_of, flavour, merged, pod_of, render

ALL = sorted(cases())
TWO = {"agent-runner", "io-handler"}
FIVE = {"agent-runner", "push-endpoint", "request-handler", "responder", "ws-gateway"}


def workloads(release: Release) -> list[dict[str, Any]]:
    return [*release.all("Deployment"), *release.all("StatefulSet"), *release.all("Job")]


def grace_of(workload: Mapping[str, Any]) -> int:
    seconds: int = pod_of(dict(workload))["terminationGracePeriodSeconds"]
    return seconds


def variables(workload: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in container_of(dict(workload))["env"]}


def drain_of(workload: Mapping[str, Any]) -> float:
    return float(variables(workload)["AK_EXECUTION__DRAIN_GRACE"]["value"])


def test_one_value_chooses_between_two_parts_and_five(releases: Mapping[str, Release]) -> None:
    assert releases["baremetal"].parts.keys() - {"scaler"} == TWO
    assert releases["baremetal, five, all of it"].parts.keys() - {"scaler"} == FIVE


def test_gateway_and_push_endpoint_can_be_added_to_the_two(releases: Mapping[str, Release]) -> None:
    assert releases["eks"].parts.keys() - {"scaler"} == TWO | {"push-endpoint", "ws-gateway"}


@pytest.mark.parametrize("case", ALL)
def test_every_container_is_confined(case: str, releases: Mapping[str, Release]) -> None:
    for workload in workloads(releases[case]):
        pod, container = pod_of(workload), container_of(workload)
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
        }


@pytest.mark.parametrize("case", ALL)
def test_every_container_requests_what_it_needs_and_has_a_limit_of_memory(
    case: str, releases: Mapping[str, Release]
) -> None:
    for workload in workloads(releases[case]):
        resources = container_of(workload)["resources"]
        assert resources["requests"].keys() == {"cpu", "memory"}
        assert "memory" in resources["limits"]


@pytest.mark.parametrize("case", ALL)
def test_a_new_pod_is_ready_before_an_old_one_goes(
    case: str, releases: Mapping[str, Release]
) -> None:
    for workload in releases[case].parts.values():
        update = workload["spec"]["strategy"]["rollingUpdate"]
        assert update["maxUnavailable"] == 0
        assert update["maxSurge"] == 1


@pytest.mark.parametrize("case", ALL)
def test_nobody_is_killed_while_its_work_may_still_end(
    case: str, releases: Mapping[str, Release]
) -> None:
    for workload in releases[case].parts.values():
        hook = container_of(workload).get("lifecycle", {}).get("preStop", {})
        waits = hook.get("sleep", {"seconds": 0})["seconds"]
        drain = drain_of(workload)
        assert grace_of(workload) >= waits + drain + 10


def test_a_runner_may_end_its_longest_turn(releases: Mapping[str, Release]) -> None:
    runner = releases["baremetal"].parts["agent-runner"]

    assert drain_of(runner) == 600
    assert grace_of(runner) >= 600


def test_a_runner_waits_an_hour_at_most(releases: Mapping[str, Release]) -> None:
    runner = releases["baremetal, the guide's model"].parts["agent-runner"]

    assert drain_of(runner) == 3600
    assert grace_of(runner) >= 3600


@pytest.mark.parametrize("drain", [0, 90])
def test_a_drain_that_is_set_counts_for_every_part(drain: int) -> None:
    release = render(merged(AGENTS, {"settings": {"execution": {"drain_grace": drain}}}))

    for workload in release.parts.values():
        assert drain_of(workload) == drain


@pytest.mark.parametrize("case", ALL)
def test_whoever_serves_requests_waits_until_none_are_routed_to_it(
    case: str, releases: Mapping[str, Release]
) -> None:
    serving = {"io-handler", "push-endpoint", "request-handler", "scaler", "ws-gateway"}
    for name, workload in releases[case].parts.items():
        assert ("lifecycle" in container_of(workload)) == (name in serving)


def test_a_load_balancer_has_time_to_stop_routing_to_a_pod(releases: Mapping[str, Release]) -> None:
    for name in ("io-handler", "push-endpoint", "ws-gateway"):
        hook = container_of(releases["eks"].parts[name])["lifecycle"]["preStop"]
        assert hook["sleep"]["seconds"] == 20


@pytest.mark.parametrize("case", ALL)
def test_health_restarts_a_pod_and_readiness_routes_to_it(
    case: str, releases: Mapping[str, Release]
) -> None:
    for workload in releases[case].parts.values():
        container = container_of(workload)
        ports = {port["name"] for port in container["ports"]}
        for probe, path in (
            ("startup", "/health"),
            ("liveness", "/health"),
            ("readiness", "/ready"),
        ):
            asked = container[f"{probe}Probe"]["httpGet"]
            assert asked["path"] == path
            assert asked["port"] in ports


@pytest.mark.parametrize("case", ALL)
def test_the_gateway_alone_says_at_which_address_it_is_reached(
    case: str, releases: Mapping[str, Release]
) -> None:
    for name, workload in releases[case].parts.items():
        address = variables(workload).get("AK_POD_IP", {})
        if name == "ws-gateway":
            assert address["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
        else:
            assert address == {}


def test_other_settings_roll_the_pods_and_the_same_do_not() -> None:
    def checksums(**execution: object) -> set[str]:
        release = render(merged(AGENTS, {"settings": {"execution": execution}}))
        return {
            workload["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
            for workload in release.parts.values()
        }

    one, same, other = checksums(), checksums(), checksums(max_concurrency=7)

    assert one == same
    assert one.isdisjoint(other)


@pytest.mark.parametrize("case", ALL)
def test_disruptions_take_one_pod_of_a_part_and_none_is_promised_of_a_single_one(
    case: str, releases: Mapping[str, Release]
) -> None:
    release = releases[case]
    budgets = {
        each["spec"]["selector"]["matchLabels"]["app.kubernetes.io/component"]: each["spec"]
        for each in release.all("PodDisruptionBudget")
    }
    for name, workload in release.parts.items():
        assert (name in budgets) == (workload["spec"].get("replicas", 2) > 1)
    assert all(budget["maxUnavailable"] == 1 for budget in budgets.values())


def test_parts_are_spread_over_zones_and_nodes(releases: Mapping[str, Release]) -> None:
    for name, workload in releases["baremetal"].parts.items():
        spread = pod_of(workload)["topologySpreadConstraints"]
        labels = workload["spec"]["template"]["metadata"]["labels"]
        assert [each["topologyKey"] for each in spread] == [
            "topology.kubernetes.io/zone",
            "kubernetes.io/hostname",
        ]
        for each in spread:
            assert each["labelSelector"]["matchLabels"].items() <= labels.items(), name


@pytest.mark.parametrize("case", ALL)
def test_a_selector_picks_its_own_pods_alone(case: str, releases: Mapping[str, Release]) -> None:
    release = releases[case]
    pods = {
        each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"]
        for each in workloads(release)
    }
    for each in [*release.all("Deployment"), *release.all("StatefulSet")]:
        wanted = each["spec"]["selector"]["matchLabels"].items()
        picked = [name for name, labels in pods.items() if wanted <= labels.items()]
        assert picked == [each["metadata"]["name"]]


def test_one_part_can_differ_from_the_rest() -> None:
    values = merged(
        AGENTS,
        {
            "autoscaling": {"enabled": False},
            "defaults": {"replicas": 4, "nodeSelector": {"pool": "agents"}},
            "agentRunner": {"replicas": 9, "env": [{"name": "MODEL", "value": "small"}]},
        },
    )

    parts = render(values).parts

    assert parts["io-handler"]["spec"]["replicas"] == 4
    assert parts["agent-runner"]["spec"]["replicas"] == 9
    assert variables(parts["agent-runner"])["MODEL"]["value"] == "small"
    assert "MODEL" not in variables(parts["io-handler"])
    assert pod_of(parts["agent-runner"])["nodeSelector"] == {"pool": "agents"}


def test_agents_come_in_an_image_or_in_a_config_map(releases: Mapping[str, Release]) -> None:
    image = container_of(releases["baremetal"].parts["agent-runner"])
    mounted = container_of(releases["dev"].parts["agent-runner"])

    assert image["image"] == "registry.example/agents:v1"
    assert "command" not in image
    assert mounted["image"] == "turnline-runner:0.1.0"
    assert mounted["workingDir"] == "/agents"
    assert "import agent;" in mounted["command"][-1]


def test_images_come_from_the_registry_that_is_named() -> None:
    release = render(merged(AGENTS, {"image": {"registry": "registry.example/t", "tag": "9"}}))

    images = {name: container_of(part)["image"] for name, part in release.parts.items()}

    assert images == {
        "agent-runner": "registry.example/agents:v1",
        "io-handler": "registry.example/t/turnline:9",
        "scaler": "registry.example/t/turnline-scaler:9",
    }


def test_a_runner_of_turnlines_own_image_comes_from_the_registry_too() -> None:
    named = {"image": {"registry": "registry.example/t", "tag": "9"}}
    release = render(merged(flavour("dev"), named))

    image = container_of(release.parts["agent-runner"])["image"]

    assert image == "registry.example/t/turnline-runner:9"


def test_every_part_is_scraped_under_the_name_its_alerts_know(
    releases: Mapping[str, Release],
) -> None:
    release = releases["baremetal, five, all of it"]
    (monitor,) = release.all("ServiceMonitor")
    scraped = {each["port"] for each in monitor["spec"]["endpoints"]}
    services = {
        each["metadata"]["labels"]["turnline/service"]: each
        for each in release.all("Service")
        if "turnline/service" in each["metadata"]["labels"]
    }

    names = {"gateway", "push-endpoint", "request-handler", "responder", "runner", "scaler"}
    assert services.keys() == names
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    for service in services.values():
        assert wanted <= service["metadata"]["labels"].items()
        assert scraped & {port["name"] for port in service["spec"]["ports"]}
    for endpoint in monitor["spec"]["endpoints"]:
        assert {"targetLabel": "job", "replacement": "turnline"} in endpoint["relabelings"]


def test_runners_that_sleep_are_not_missed(releases: Mapping[str, Release]) -> None:
    def missed(values: Mapping[str, Any]) -> str:
        alerts = {"monitoring": {"prometheusRule": {"enabled": True}}}
        (rule,) = render(merged(AGENTS, alerts, values)).all("PrometheusRule")
        expressions = {each["alert"]: each["expr"] for each in rule["spec"]["groups"][0]["rules"]}
        expression: str = expressions["TurnlineServiceMissing"]
        return expression

    assert 'service="runner"' not in missed({"autoscaling": {"minReplicas": 0}})
    assert 'service="runner"' in missed({"autoscaling": {"minReplicas": 1}})
    assert 'service="runner"' in missed({"autoscaling": {"enabled": False}})
    assert 'service="gateway"' in missed(merged(JWT, {"wsGateway": {"enabled": True}}))
