"""A real API server, which judges by more than schemas, takes every release, and its upgrades."""

from collections.abc import Iterator, Mapping

import pytest

from helm import build_api_server
from helm.chart import AGENTS, Refused, Release, Values, cases, flavour, merged
from helm.kubernetes import Cluster, running

CASES = cases()
ALL = sorted(CASES)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if reason := build_api_server.why_not():
        pytest.skip(reason)
    with running() as found:
        yield found


@pytest.mark.parametrize("case", ALL)
def test_the_server_takes_every_object_of_a_release(
    case: str, cluster: Cluster, releases: Mapping[str, Release]
) -> None:
    namespace = f"case-{ALL.index(case)}"

    cluster.install("chat", namespace, CASES[case])

    for each in releases[case].objects:
        held = cluster.get(each["kind"].lower(), each["metadata"]["name"], namespace)
        assert held["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"


def test_the_server_refuses_what_it_does_not_know(cluster: Cluster) -> None:
    wrong: Values = {"defaults": {"affinity": {"nodeAfinity": {}}}}

    with pytest.raises(Refused, match="nodeAfinity"):
        cluster.install("chat", "wrong", merged(flavour("dev"), wrong))


def test_an_upgrade_keeps_secrets_and_the_number_of_runners(cluster: Cluster) -> None:
    values = merged(flavour("baremetal"), AGENTS)
    cluster.install("chat", "upgraded", values)
    before = cluster.get("secret", "chat-turnline", "upgraded")["data"]
    runner = "chat-turnline-agent-runner"
    cluster.kubectl("scale", "deployment", runner, "--replicas=7", "--namespace", "upgraded")

    other = {"settings": {"execution": {"max_concurrency": 7}}}
    cluster.install("chat", "upgraded", merged(values, other))

    assert cluster.get("secret", "chat-turnline", "upgraded")["data"] == before
    deployment = cluster.get("deployment", runner, "upgraded")
    assert deployment["spec"]["replicas"] == 7
    assert "max_concurrency: 7" in str(cluster.get("configmap", "chat-turnline", "upgraded"))


def test_what_holds_data_outlives_the_release(cluster: Cluster) -> None:
    cluster.install("chat", "ended", merged(flavour("baremetal"), AGENTS))

    cluster.helm("uninstall", "chat", "--namespace", "ended")

    assert cluster.get("secret", "chat-turnline", "ended")
    assert cluster.get("stream", "agent-requests", "ended")
    with pytest.raises(Refused, match="NotFound"):
        cluster.get("deployment", "chat-turnline-io-handler", "ended")


def test_a_release_that_comes_back_finds_its_secrets_and_streams(cluster: Cluster) -> None:
    values = merged(flavour("baremetal"), AGENTS)
    cluster.install("chat", "back", values)
    before = cluster.get("secret", "chat-turnline", "back")["data"]
    cluster.helm("uninstall", "chat", "--namespace", "back")

    cluster.install("chat", "back", values)

    assert cluster.get("secret", "chat-turnline", "back")["data"] == before
