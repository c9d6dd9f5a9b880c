"""Secrets are referred to or made once, and stand in no configuration."""

import base64
from collections.abc import Mapping

import pytest

from helm.chart import (
    AGENTS,
    CHART,
    JWT,
    SOCKETS,
    Release,
    cases,
    container_of,
    flavour,
    merged,
    pod_of,
    render,
)

ALL = sorted(cases())


def sources(release: Release, part: str) -> dict[str, tuple[str, str]]:
    """Give the secret and key behind each mounted file."""
    (volume,) = [v for v in pod_of(release.parts[part])["volumes"] if v["name"] == "secrets"]
    return {
        item["path"]: (source["secret"]["name"], item["key"])
        for source in volume["projected"]["sources"]
        for item in source["secret"]["items"]
    }


@pytest.mark.parametrize("case", ALL)
def test_no_secret_stands_in_a_config_map_or_an_argument(
    case: str, releases: Mapping[str, Release]
) -> None:
    release = releases[case]
    secret = release.all("Secret")
    texts = [base64.b64decode(value).decode() for each in secret for value in each["data"].values()]
    texts = [text for text in texts if text != "turnline"]
    for each in release.objects:
        if each["kind"] != "Secret":
            assert not [text for text in texts if text in str(each)]


def test_what_is_made_is_hard_to_guess_and_new_for_every_release() -> None:
    def made() -> set[str]:
        release = render(merged(AGENTS, JWT, SOCKETS))
        data: dict[str, str] = release.one("Secret", "")["data"]
        return {value for key, value in data.items() if key != "nats-username"}

    one, other = made(), made()

    assert len(one) == 3
    assert one.isdisjoint(other)
    assert all(len(base64.b64decode(value)) >= 32 for value in one)


def test_what_was_made_is_kept_over_upgrades_and_the_end_of_the_release() -> None:
    secret = render(merged(AGENTS)).one("Secret", "")
    template = (CHART / "templates" / "secret.yaml").read_text()

    assert secret["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert 'lookup "v1" "Secret"' in template


def test_whatever_is_referred_to_is_not_made() -> None:
    given = {
        "secrets": {
            "pushToken": {"existingSecret": "push", "key": "token"},
            "store": {"existingSecret": "cache", "key": "pw"},
            "nats": {"existingSecret": "broker", "key": "pw"},
            "adminToken": {"existingSecret": "admin"},
            "jwt": {"existingSecret": "jwt"},
        },
        "settings": {"auth": {"type": "jwt"}},
    }

    release = render(merged(AGENTS, SOCKETS, given))

    assert release.all("Secret") == []
    assert sources(release, "ws-gateway") == {
        "admin-token": ("admin", "admin-token"),
        "jwt-secret": ("jwt", "jwt-secret"),
        "nats-password": ("broker", "pw"),
        "push-token": ("push", "token"),
        "store-password": ("cache", "pw"),
    }


def test_servers_in_the_release_take_the_password_that_the_services_have(
    releases: Mapping[str, Release],
) -> None:
    release = releases["baremetal"]
    files = sources(release, "io-handler")
    for server, file in (("nats", "nats-password"), ("valkey", "store-password")):
        container = container_of(release.one("StatefulSet", server))
        (reference,) = [
            each["valueFrom"]["secretKeyRef"]
            for each in container["env"]
            if each["name"] == "PASSWORD"
        ]
        assert (reference["name"], reference["key"]) == files[file]


def test_the_password_of_strimzis_user_is_the_one_strimzi_makes(
    releases: Mapping[str, Release],
) -> None:
    release = releases["baremetal-kafka"]
    (user,) = release.all("KafkaUser")
    files = sources(release, "agent-runner")

    assert user["metadata"]["name"] == "chat-turnline-kafka"
    assert files["kafka-password"] == ("chat-turnline-kafka", "password")
    assert files["kafka-ca.crt"] == ("kafka-cluster-ca-cert", "ca.crt")


@pytest.mark.parametrize("case", ALL)
def test_no_user_of_strimzis_has_the_name_of_a_secret_made_here(
    case: str, releases: Mapping[str, Release]
) -> None:
    release = releases[case]
    users = {each["metadata"]["name"] for each in release.all("KafkaUser")}

    assert users.isdisjoint(each["metadata"]["name"] for each in release.all("Secret"))


def test_no_push_token_is_made_where_nothing_is_pushed() -> None:
    release = render(flavour("dev"))

    assert "push-token" not in release.one("Secret", "")["data"]
    assert "push_auth_token" not in release.config["websocket_api"]
