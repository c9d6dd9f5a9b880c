"""What the operator may say to librdkafka, and what becomes of it."""

from dataclasses import replace

import pytest

from turnline.errors import ConfigurationError
from turnline.protocol.clock import SystemClock
from turnline.transport.kafka import KafkaTransport
from turnline.transport.kafka.clients import member_config, producer_config, reader_config
from turnline.transport.kafka.harness import options_for
from turnline.transport.kafka.options import ConfigValue

OPTIONS = options_for("127.0.0.1:1")


def test_what_would_break_a_promise_is_refused_all_at_once() -> None:
    config: dict[str, ConfigValue] = {
        "acks": 1,
        "enable.auto.commit": True,
        "linger.ms": 5,
        "partitioner": "x",
    }
    with pytest.raises(ConfigurationError) as refusal:
        KafkaTransport(replace(OPTIONS, client_config=config), SystemClock())
    named = [fault.split(" ")[0] for fault in refusal.value.faults]
    where = "execution.queues.kafka.client_config."
    assert named == [where + name for name in ("acks", "enable.auto.commit", "partitioner")]


async def test_settings_that_the_client_does_not_know_are_a_fault_of_the_configuration() -> None:
    options = replace(OPTIONS, client_config={"no.such.setting": "x"})
    with pytest.raises(ConfigurationError, match=r"no\.such\.setting"):
        await KafkaTransport(options, SystemClock()).__aenter__()


async def test_settings_that_only_members_of_a_group_take_are_tried_at_start_up() -> None:
    options = replace(OPTIONS, client_config={"fetch.wait.max.ms": "soon"})
    with pytest.raises(ConfigurationError, match=r"fetch\.wait\.max\.ms"):
        await KafkaTransport(options, SystemClock()).__aenter__()


def test_the_operators_settings_reach_all_clients() -> None:
    options = replace(OPTIONS, client_config={"security.protocol": "SASL_SSL"})
    for config in (
        producer_config(options),
        reader_config(options),
        member_config(options, options.input),
    ):
        assert config["security.protocol"] == "SASL_SSL"


def test_a_member_has_fifteen_minutes_between_polls_and_begins_at_the_oldest_record() -> None:
    config = member_config(replace(OPTIONS, client_config={}), OPTIONS.input)
    assert config["max.poll.interval.ms"] == 900_000
    assert config["auto.offset.reset"] == "earliest"
    assert config["session.timeout.ms"] == 10_000


def test_the_newer_group_protocol_is_not_given_what_its_brokers_decide() -> None:
    options = replace(OPTIONS, client_config={"group.protocol": "consumer"})
    config = member_config(options, options.input)
    assert config["group.protocol"] == "consumer"
    assert "session.timeout.ms" not in config
    assert "partition.assignment.strategy" not in config


def test_the_name_of_a_static_member_is_given_to_the_group_alone() -> None:
    options = replace(OPTIONS, client_config={"group.instance.id": "pod-0"})
    assert member_config(options, options.input)["group.instance.id"] == "pod-0"
    assert "group.instance.id" not in reader_config(options)
    assert "group.instance.id" not in producer_config(options)
