"""Who may reach whom, and what can be reached from outside."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from helm.chart import AGENTS, JWT, SOCKETS, Release, cases, flavour, merged, render

ALL = sorted(cases())
STRICT = "baremetal, five, all of it"
OURS = {"app.kubernetes.io/name": "turnline", "app.kubernetes.io/instance": "chat"}


def rules(release: Release, component: str) -> list[dict[str, Any]]:
    """Give what may reach a component: one rule a port."""
    found: list[dict[str, Any]] = []
    for policy in release.all("NetworkPolicy"):
        selected = policy["spec"]["podSelector"]["matchLabels"]
        if selected.get("app.kubernetes.io/component") == component:
            found += policy["spec"].get("ingress", [])
    return found


def peers(release: Release, component: str, port: str) -> list[dict[str, Any]]:
    """Give who may reach a port; an empty rule is anybody, as `{}`."""
    return [
        peer
        for rule in rules(release, component)
        if port in [each["port"] for each in rule["ports"]]
        for peer in rule.get("from", [{}])
    ]


def paths(release: Release) -> Iterator[tuple[str, str]]:
    for ingress in release.all("Ingress"):
        for rule in ingress["spec"]["rules"]:
            for each in rule["http"]["paths"]:
                yield each["path"], each["backend"]["service"]["name"]


def test_clients_reach_rest_and_sockets(releases: Mapping[str, Release]) -> None:
    release = releases[STRICT]

    assert {} in peers(release, "request-handler", "http")
    assert {} in peers(release, "ws-gateway", "http")


def test_clients_can_be_narrowed_to_those_behind_the_ingress() -> None:
    controller = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress"}}}
    release = render(merged(AGENTS, {"networkPolicy": {"clients": [controller]}}))

    assert {} not in peers(release, "io-handler", "http")
    assert controller in peers(release, "io-handler", "http")


@pytest.mark.parametrize("component", ["ws-gateway", "push-endpoint"])
def test_pushes_come_from_this_release_alone(
    component: str, releases: Mapping[str, Release]
) -> None:
    scrapes = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    found = peers(releases[STRICT], component, "push")

    assert [each for each in found if each != scrapes] == [{"podSelector": {"matchLabels": OURS}}]


def test_servers_of_ones_own_may_be_let_push_to_users_but_not_to_gateways() -> None:
    shop = {"podSelector": {"matchLabels": {"app": "shop"}}}
    values = merged(AGENTS, JWT, SOCKETS, {"networkPolicy": {"pushers": [shop]}})

    release = render(values)

    assert shop in peers(release, "push-endpoint", "push")
    assert shop not in peers(release, "ws-gateway", "push")


@pytest.mark.parametrize("case", ALL)
def test_nothing_internal_is_routed_from_outside(
    case: str, releases: Mapping[str, Release]
) -> None:
    for path, service in paths(releases[case]):
        assert path in {"/api", "/custom", "/openapi.json", "/ws"}
        assert not service.endswith(("push-endpoint", "agent-runner", "scaler", "responder"))


def test_sockets_go_to_the_gateway_and_requests_to_rest(releases: Mapping[str, Release]) -> None:
    routed = dict(paths(releases[STRICT]))

    assert routed["/ws"] == "chat-turnline-ws-gateway"
    assert routed["/api"] == "chat-turnline-request-handler"


@pytest.mark.parametrize(
    ("case", "annotation", "value"),
    [
        (STRICT, "nginx.ingress.kubernetes.io/proxy-read-timeout", "3600"),
        (STRICT, "nginx.ingress.kubernetes.io/proxy-buffering", "off"),
        (
            "eks",
            "alb.ingress.kubernetes.io/load-balancer-attributes",
            "idle_timeout.timeout_seconds=3600",
        ),
    ],
)
def test_sockets_and_streams_may_be_silent_for_an_hour(
    case: str, annotation: str, value: str, releases: Mapping[str, Release]
) -> None:
    (ingress,) = releases[case].all("Ingress")

    assert ingress["metadata"]["annotations"][annotation] == value


def test_nobody_reaches_a_runner_but_for_scrapes(releases: Mapping[str, Release]) -> None:
    (rule,) = rules(releases[STRICT], "agent-runner")

    assert rule["from"] == [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    ]


def test_keda_alone_asks_the_scaler(releases: Mapping[str, Release]) -> None:
    assert peers(releases[STRICT], "scaler", "grpc") == [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "keda"}}}
    ]


def test_broker_and_store_are_reached_from_this_release_and_by_operators(
    releases: Mapping[str, Release],
) -> None:
    ours = {"podSelector": {"matchLabels": OURS}}
    nack = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "nack"}}}

    assert peers(releases[STRICT], "nats", "client") == [ours, nack]
    assert peers(releases[STRICT], "valkey", "valkey") == [ours]


def test_default_deny_refuses_what_no_policy_allows_and_lets_names_be_asked(
    releases: Mapping[str, Release],
) -> None:
    release = releases[STRICT]

    deny = release.one("NetworkPolicy", "default-deny")["spec"]
    allowed = release.one("NetworkPolicy", "egress")["spec"]["egress"]

    assert deny == {"podSelector": {"matchLabels": OURS}, "policyTypes": ["Ingress", "Egress"]}
    assert any(port["port"] == 53 for rule in allowed for port in rule.get("ports", []))


def test_without_default_deny_nothing_is_said_of_outgoing_traffic(
    releases: Mapping[str, Release],
) -> None:
    for policy in releases["baremetal"].all("NetworkPolicy"):
        assert policy["spec"]["policyTypes"] == ["Ingress"]


def test_policies_can_be_left_out() -> None:
    assert render(flavour("dev")).all("NetworkPolicy") == []
