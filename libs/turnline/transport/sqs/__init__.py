"""The transport over SQS: FIFO queues, a group per session, leases that are renewed (ADR 0012)."""

from turnline.transport.sqs.options import QueueOptions, SqsOptions
from turnline.transport.sqs.provisioner import SqsProvisioner, open_provisioner
from turnline.transport.sqs.queue import SqsConsumer, SqsQueue
from turnline.transport.sqs.transport import SqsTransport, open_transport

__all__ = [
    "QueueOptions",
    "SqsConsumer",
    "SqsOptions",
    "SqsProvisioner",
    "SqsQueue",
    "SqsTransport",
    "open_provisioner",
    "open_transport",
]
