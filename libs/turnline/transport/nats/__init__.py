"""The NATS transport: JetStream work queues, one subject per session."""

from turnline.transport.nats.options import NatsOptions, QueueOptions, ServerOptions
from turnline.transport.nats.provisioner import open_provisioner
from turnline.transport.nats.queue import NatsConsumer, NatsQueue
from turnline.transport.nats.transport import NatsTransport, open_transport

__all__ = [
    "NatsConsumer",
    "NatsOptions",
    "NatsQueue",
    "NatsTransport",
    "QueueOptions",
    "ServerOptions",
    "open_provisioner",
    "open_transport",
]
