"""The settings of librdkafka's clients: ours, what the operator adds, and what may not be added.

https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md, checked on 2026-11-30.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaException

from turnline.errors import ConfigurationError
from turnline.transport.kafka.options import ConfigValue, KafkaOptions, QueueOptions

_T = TypeVar("_T")

MAX_POLL_INTERVAL_SECONDS = 900
_SETTING = "execution.queues.kafka.client_config"
# The others hear with their next one that a member is dead, so they add to what its death costs.
_HEARTBEATS_PER_SESSION = 10

# Setting -> which promise another value would break.
_REFUSED: Mapping[str, str] = {
    "acks": "a sent envelope must be on all replicas in sync",
    "auto.offset.reset": "a cold start must not skip requests",
    "bootstrap.servers": "write it as execution.queues.kafka.bootstrap_servers",
    "delivery.timeout.ms": "write it as execution.queues.kafka.delivery_timeout",
    "enable.auto.commit": "an envelope stays until it is settled",
    "enable.auto.offset.store": "an envelope stays until it is settled",
    "enable.idempotence": "order and single copies need it",
    "enable.partition.eof": "nothing reads it",
    "group.id": "write it as execution.queues.kafka.group_id",
    "message.timeout.ms": "write it as execution.queues.kafka.delivery_timeout",
    "partition.assignment.strategy": "partitions move one by one (cooperative-sticky)",
    "partitioner": "producers in all languages must agree (murmur2_random)",
    "request.required.acks": "a sent envelope must be on all replicas in sync",
    "transactional.id": "producers here are not transactional",
}
# The newer group protocol takes these from the brokers.
_CLASSIC_ONLY = ("heartbeat.interval.ms", "partition.assignment.strategy", "session.timeout.ms")

_MEMBERS_ONLY = ("fetch.", "group.", "heartbeat.", "max.poll.", "queued.", "session.timeout.")


def check_client_config(config: Mapping[str, ConfigValue]) -> None:
    """Refuse what would break a promise.

    Raises:
        ConfigurationError: naming every such setting and why.
    """
    faults = [
        f"{_SETTING}.{name} can't be set: {_REFUSED[name]}; leave it out"
        for name in config
        if name in _REFUSED
    ]
    if faults:
        raise ConfigurationError(faults)


def made(make: Callable[[dict[str, Any]], _T], config: dict[str, Any]) -> _T:
    """Make a client.

    Raises:
        ConfigurationError: librdkafka refuses its settings.
    """
    try:
        return make(config)
    except KafkaException as error:
        told = error.args[0].str() if error.args else str(error)
        raise ConfigurationError([f"{_SETTING}: the client refuses its settings: {told}"]) from (
            error
        )


def admin_config(options: KafkaOptions) -> dict[str, Any]:
    """Give the settings of the client that asks and makes."""
    return {**_common(options), **_not_for_members(options.client_config)}


def producer_config(options: KafkaOptions) -> dict[str, Any]:
    """Give the settings of the client that sends."""
    return {
        **_common(options),
        "linger.ms": 0,
        # What comes while a request is on its way goes with the next one: under load that
        # is less work for the brokers, and alone nobody waits.
        "max.in.flight.requests.per.connection": 1,
        "message.max.bytes": 100_000_000,
        **_not_for_members(options.client_config),
        "acks": "all",
        "enable.idempotence": True,
        "partitioner": "murmur2_random",
        "delivery.timeout.ms": round(options.delivery_timeout * 1000),
    }


def reader_config(options: KafkaOptions) -> dict[str, Any]:
    """Give the settings of the client that reads a topic apart from any group."""
    return {
        **_common(options),
        "fetch.wait.max.ms": 100,
        **_without(options.client_config, "group.instance.id", "group.protocol"),
        # Named because a consumer must; it joins nothing and commits nothing.
        "group.id": f"{options.input.group}-inspection",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
    }


def member_config(options: KafkaOptions, queue: QueueOptions) -> dict[str, Any]:
    """Give the settings of a group's member."""
    silence = round(options.ack_wait * 1000)
    asked = options.client_config
    config = {
        **_common(options),
        "session.timeout.ms": silence,
        "heartbeat.interval.ms": silence // _HEARTBEATS_PER_SESSION,
        "max.poll.interval.ms": max(MAX_POLL_INTERVAL_SECONDS * 1000, silence),
        # The wait of a fetch that finds nothing holds up partitions that are added meanwhile.
        "fetch.wait.max.ms": 100,
        "queued.min.messages": 1000,
        "queued.max.messages.kbytes": 16_384,
        **asked,
        "group.id": queue.group,
        "partition.assignment.strategy": "cooperative-sticky",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
    }
    if str(asked.get("group.protocol", "classic")).lower() == "consumer":
        return _without(config, *_CLASSIC_ONLY)
    return config


def _common(options: KafkaOptions) -> dict[str, Any]:
    return {
        "bootstrap.servers": options.bootstrap_servers,
        "client.id": "turnline",
        # It repeats itself with every try; what matters comes as an error, and we say it once.
        "log_level": 2,
        "reconnect.backoff.ms": 50,
        "reconnect.backoff.max.ms": 1000,
        "socket.connection.setup.timeout.ms": 5000,
    }


def _not_for_members(config: Mapping[str, ConfigValue]) -> dict[str, ConfigValue]:
    """Leave out what only consumers know: other clients would complain of it."""
    return {name: value for name, value in config.items() if not name.startswith(_MEMBERS_ONLY)}


def _without(config: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name not in names}
