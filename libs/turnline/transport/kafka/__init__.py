"""The Kafka transport: a topic each way, keyed by session, one member of a group per process."""

from turnline.transport.kafka.options import KafkaOptions, QueueOptions
from turnline.transport.kafka.provisioner import open_provisioner
from turnline.transport.kafka.queue import KafkaConsumer, KafkaQueue
from turnline.transport.kafka.transport import KafkaTransport, open_transport

# Kafka counts no deliveries and knows no copies.
NEEDS_BOOKKEEPING = True

__all__ = [
    "NEEDS_BOOKKEEPING",
    "KafkaConsumer",
    "KafkaOptions",
    "KafkaQueue",
    "KafkaTransport",
    "QueueOptions",
    "open_provisioner",
    "open_transport",
]
