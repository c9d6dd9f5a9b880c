"""The topics a transport needs, as data.  Pure: knows settings, asks no broker."""

from collections.abc import Mapping
from dataclasses import dataclass

from turnline.transport.kafka.options import KafkaOptions

# A letter is the record it was, with some headers more.
LETTER_ROOM_BYTES = 64 * 1024
MAX_MESSAGE_BYTES = 1_048_588  # the brokers' own default
_MILLISECONDS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """A topic.

    Attributes:
        partitions: as many or more; a topic is never made smaller.
        replicas: when it is made; left as it is afterwards.
        config: what must be so, by the brokers' own names.
    """

    name: str
    partitions: int
    replicas: int
    config: Mapping[str, str]


def topology_of(options: KafkaOptions) -> tuple[TopicSpec, ...]:
    """Give what both queues need, in the order in which to create it."""
    specs: list[TopicSpec] = []
    for queue in options.queues:
        specs.append(_work(queue.topic, options))
        specs.append(_dead(queue.dead_topic, options))
    return tuple(specs)


def _work(name: str, options: KafkaOptions) -> TopicSpec:
    age = round(options.max_age * _MILLISECONDS) if options.max_age else -1
    return TopicSpec(
        name=name,
        partitions=options.partitions,
        replicas=options.replicas,
        config={
            "cleanup.policy": "delete",
            "max.message.bytes": str(MAX_MESSAGE_BYTES),
            "min.insync.replicas": _in_sync(options),
            "retention.ms": str(age),
        },
    )


def _dead(name: str, options: KafkaOptions) -> TopicSpec:
    return TopicSpec(
        name=name,
        partitions=1,
        replicas=options.replicas,
        config={
            # Letters that were replaced or deleted go when the brokers compact the topic.
            "cleanup.policy": "compact",
            "max.message.bytes": str(MAX_MESSAGE_BYTES + LETTER_ROOM_BYTES),
            "min.insync.replicas": _in_sync(options),
        },
    )


def _in_sync(options: KafkaOptions) -> str:
    return str(max(1, options.replicas - 1))
