"""What lies on the broker is what `turnline provision` would make there, object by object."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from helm.chart import AGENTS, Object, Release, container_of, flavour, merged, render
from turnline.cli.main import main

Queues = Mapping[str, Any]
KINDS = ("Stream", "Consumer", "KafkaTopic")
# How to reach the server is not said by the command.
CONNECTION = ("account", "servers")

NATS: dict[str, Queues] = {
    "defaults": {},
    "the guide's model": {"partitions": 3, "max_ack_pending": 1},
    "a hundred a partition": {"partitions": 2, "max_ack_pending": 100, "replicas": 3},
    "no limits": {"max_age": 0, "max_messages_per_session": 0, "duplicate_window": 0},
    "a short life": {"max_age": 60, "duplicate_window": 0, "ack_wait": 1.5},
    "a million": {"max_messages": 1_000_000, "max_messages_per_session": 5, "max_dead_letters": 9},
    "other names": {
        "input_stream": "IN_1",
        "output_stream": "OUT",
        "input_subject_prefix": "a.b",
        "output_subject_prefix": "c",
    },
}
KAFKA: dict[str, Queues] = {
    "defaults": {},
    "three copies": {"partitions": 7, "replicas": 3},
    "for ever": {"max_age": 0},
    "other names": {"input_topic": "In_1", "output_topic": "out", "dlq_suffix": "_dead"},
}


def provisioned(
    release: Release, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[tuple[str, str], Object]:
    """Give what the command prints for the settings of a release."""
    for name in ("store-password", "nats-password", "kafka-password"):
        (folder / name).write_text("secret")
    (folder / "config.yaml").write_text(yaml.safe_dump(release.config))
    monkeypatch.chdir(folder)
    monkeypatch.setenv("AK_SECRETS_PATH", str(folder))
    result = CliRunner().invoke(main, ["provision", "--manifests"])
    assert result.exit_code == 0, result.output
    return by_name(list(yaml.safe_load_all(result.output)))


def by_name(objects: list[Object]) -> dict[tuple[str, str], Object]:
    return {(each["kind"], each["metadata"]["name"]): each for each in objects}


def agreeing(release: Release) -> dict[tuple[str, str], Object]:
    return by_name([each for each in release.objects if each["kind"] in KINDS])


def spec(each: Object) -> dict[str, Any]:
    return {name: value for name, value in each["spec"].items() if name not in CONNECTION}


@pytest.mark.parametrize("case", sorted(NATS))
def test_streams_and_consumers_are_those_of_the_command(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"settings": {"execution": {"queues": {"nats": NATS[case]}}}}
    release = render(merged(AGENTS, {"nats": {"replicas": 3}}, settings))

    wanted, found = provisioned(release, tmp_path, monkeypatch), agreeing(release)

    assert wanted.keys() == found.keys()
    for name, each in wanted.items():
        assert found[name]["apiVersion"] == each["apiVersion"]
        assert spec(found[name]) == each["spec"], name


@pytest.mark.parametrize("case", sorted(KAFKA))
def test_topics_are_those_of_the_command(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"settings": {"execution": {"queues": {"kafka": KAFKA[case]}}}}
    values = merged(flavour("baremetal-kafka"), AGENTS, settings)
    release = render(values)

    wanted, found = provisioned(release, tmp_path, monkeypatch), agreeing(release)

    assert wanted.keys() == found.keys()
    for name, each in wanted.items():
        assert found[name]["apiVersion"] == each["apiVersion"]
        assert spec(found[name]) == each["spec"], name
        assert each["metadata"]["labels"].items() <= found[name]["metadata"]["labels"].items()


def test_resources_of_the_broker_outlive_the_release(releases: Mapping[str, Release]) -> None:
    for case in ("baremetal", "baremetal-kafka"):
        kept = [*agreeing(releases[case]).values(), *releases[case].all("Account")]
        for each in kept:
            assert each["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_nack_signs_in_as_the_services_do(releases: Mapping[str, Release]) -> None:
    release = releases["baremetal"]
    (account,) = release.all("Account")
    secret = release.one("Secret", "")
    user = account["spec"]["user"]

    assert account["spec"]["servers"] == ["nats://chat-turnline-nats.agents:4222"]
    assert user["secret"]["name"] == secret["metadata"]["name"]
    assert {user["user"], user["password"]} <= secret["data"].keys()
    for each in [*release.all("Stream"), *release.all("Consumer")]:
        assert each["spec"]["account"] == account["metadata"]["name"]


def test_nack_can_be_told_of_servers_outside() -> None:
    values: dict[str, Any] = {
        "nats": {"enabled": False},
        "provisioning": {"nackServers": ["nats://nats.example:4222"]},
        "settings": {"execution": {"queues": {"nats": {"url": "nats://nats.example:4222"}}}},
    }
    release = render(merged(AGENTS, values))

    assert release.all("Account") == []
    for each in release.all("Stream"):
        assert each["spec"]["servers"] == ["nats://nats.example:4222"]


def test_the_kafka_user_may_do_what_the_services_do(releases: Mapping[str, Release]) -> None:
    release = releases["baremetal-kafka"]
    (user,) = release.all("KafkaUser")
    rules = user["spec"]["authorization"]["acls"]

    topics = {each["resource"]["name"] for each in rules if each["resource"]["type"] == "topic"}
    (group,) = [each["resource"] for each in rules if each["resource"]["type"] == "group"]

    assert topics == {each["spec"]["topicName"] for each in release.all("KafkaTopic")}
    assert (group["name"], group["patternType"]) == ("agent-kernel", "prefix")
    client = release.config["execution"]["queues"]["kafka"]["client_config"]
    assert client["sasl.username"] == user["metadata"]["name"]


def test_a_job_makes_them_where_no_operator_does(releases: Mapping[str, Release]) -> None:
    for case in ("external kafka", "external nats"):
        (job,) = releases[case].all("Job")
        assert container_of(job)["args"] == ["provision"]
        assert agreeing(releases[case]) == {}


def test_there_is_a_new_job_for_other_settings_and_none_for_the_same() -> None:
    def made(values: Mapping[str, Any]) -> Object:
        (job,) = render(merged(AGENTS, {"provisioning": {"by": "job"}}, values)).all("Job")
        return job

    first, same = made({}), made({})
    others = [
        made({"settings": {"execution": {"max_concurrency": 7}}}),
        # A job's pod cannot be changed, so whatever changes it needs a new job.
        made({"image": {"pullPolicy": "Always"}}),
        made({"image": {"pullSecrets": ["registry"]}}),
        made({"serviceAccount": {"name": "another"}}),
        made({"secrets": {"store": {"existingSecret": "cache"}}}),
    ]

    assert first == same
    names = [each["metadata"]["name"] for each in (first, *others)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", ["dev", "eks"])
def test_nothing_is_made_where_the_services_or_others_make_it(
    case: str, releases: Mapping[str, Release]
) -> None:
    assert agreeing(releases[case]) == {}
    assert releases[case].all("Job") == []


def test_another_configuration_rolls_the_servers_and_the_same_does_not() -> None:
    def checksum(**nats: object) -> str:
        server = render(merged(AGENTS, {"nats": nats})).one("StatefulSet", "nats")
        found: str = server["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
        return found

    assert checksum() == checksum()
    assert checksum() != checksum(replicas=3)


def test_valkey_is_asked_with_its_password_whether_it_serves(
    releases: Mapping[str, Release],
) -> None:
    container = container_of(releases["baremetal"].one("StatefulSet", "valkey"))
    given = {each["name"]: each.get("value") for each in container["env"]}

    assert container["readinessProbe"]["exec"]["command"] == ["valkey-cli", "-e", "ping"]
    assert given["REDISCLI_AUTH"] == "$(PASSWORD)"


def test_servers_of_a_cluster_stand_on_nodes_of_their_own(releases: Mapping[str, Release]) -> None:
    nats = releases["baremetal"].one("StatefulSet", "nats")
    (spread,) = nats["spec"]["template"]["spec"]["topologySpreadConstraints"]

    assert nats["spec"]["replicas"] == 3
    assert spread["whenUnsatisfiable"] == "DoNotSchedule"
    config = releases["baremetal"].one("ConfigMap", "nats")["data"]["nats.conf"]
    assert config.count(".chat-turnline-nats-servers:6222") == 3
