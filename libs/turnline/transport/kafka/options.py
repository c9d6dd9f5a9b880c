"""What a Kafka transport is made from: where the brokers are, and what lies on them.

Plain values; `options_from` reads them out of `execution.queues`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from turnline.config import Settings

ConfigValue = str | int | float | bool

# What a record's key and headers may take of a topic's `max.message.bytes`, which counts all.
HEADER_ROOM_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """One queue.

    Attributes:
        name: `input` or `output`, for logs.
        topic: where its records lie.
        dead_topic: where its dead letters lie.
        group: consumer group that reads it.
        max_per_session: one session's share of the queue, messages; 0 means all of it.
        no_of_consumers: readers per process, for the line at start-up.
    """

    name: str
    topic: str
    dead_topic: str
    group: str
    max_per_session: int = 0
    no_of_consumers: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaOptions:
    """Both queues and the brokers they lie on.

    Attributes:
        bootstrap_servers: host:port of brokers, separated by commas.
        client_config: librdkafka's settings for all clients; may hold a password.
        partitions: of each topic, when it is made.
        replicas: copies of each topic, when it is made.
        max_age: seconds a record stays, when a topic is made; 0: for ever.
        ack_wait: seconds without a sign of life: of a delivery until it comes back, and of a
            member of the group until its partitions are given to others.
        duplicate_window: seconds within which a repeated id is dropped; 0: none is.
        max_messages: what each queue holds; more are refused.
        max_dead_letters: what each dead-letter topic holds; the oldest gives way.
        max_bytes: largest encoded envelope; None: what the topics take.
        delivery_timeout: seconds to wait until a record is confirmed.
        metadata_timeout: seconds to wait for the brokers at start-up.
        request_timeout: seconds to wait for any other answer.
    """

    bootstrap_servers: str
    input: QueueOptions
    output: QueueOptions
    client_config: Mapping[str, ConfigValue] = field(default_factory=dict, repr=False)
    partitions: int = 32
    replicas: int = 1
    max_age: float = 86_400.0
    ack_wait: float = 10.0
    duplicate_window: float = 300.0
    max_messages: int = 10_000
    max_dead_letters: int = 1_000
    max_bytes: int | None = None
    delivery_timeout: float = 30.0
    metadata_timeout: float = 5.0
    request_timeout: float = 10.0

    @property
    def queues(self) -> tuple[QueueOptions, QueueOptions]:
        """Both queues, input first."""
        return self.input, self.output


def options_from(settings: Settings) -> KafkaOptions:
    """Read what `execution.queues` says."""
    queues = settings.execution.queues
    asked = queues.kafka
    config = {
        name: value
        for name, value in asked.client_config.items()
        if isinstance(value, str | int | float | bool)
    }
    return KafkaOptions(
        bootstrap_servers=asked.bootstrap_servers,
        client_config=config,
        input=QueueOptions(
            name="input",
            topic=asked.input_topic,
            dead_topic=asked.input_topic + asked.dlq_suffix,
            group=f"{asked.group_id}-input",
            max_per_session=asked.max_messages_per_session,
            no_of_consumers=queues.input.no_of_consumers,
        ),
        output=QueueOptions(
            name="output",
            topic=asked.output_topic,
            dead_topic=asked.output_topic + asked.dlq_suffix,
            group=f"{asked.group_id}-output",
            no_of_consumers=queues.output.no_of_consumers,
        ),
        partitions=asked.partitions,
        replicas=asked.replicas,
        max_age=asked.max_age,
        ack_wait=asked.ack_wait,
        duplicate_window=asked.duplicate_window,
        max_messages=asked.max_messages,
        max_dead_letters=asked.max_dead_letters,
        delivery_timeout=asked.delivery_timeout,
        metadata_timeout=asked.metadata_timeout,
    )
