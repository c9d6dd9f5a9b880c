"""The transport over SQS: FIFO queues, a group per session, leases that are renewed (ADR 0012)."""

from turnline.transport.sqs.options import QueueOptions, SqsOptions
from turnline.transport.sqs.provisioner import SqsProvisioner, open_provisioner
from turnline.transport.sqs.queue import SqsConsumer, SqsQueue
from turnline.transport.sqs.transport import SqsTransport, open_transport
from turnline.transport.sqs.triggered import TriggeredQueue

# It does without, but for a session's share and what other processes handed back.
NEEDS_BOOKKEEPING = True

__all__ = [
    "NEEDS_BOOKKEEPING",
    "QueueOptions",
    "SqsConsumer",
    "SqsOptions",
    "SqsProvisioner",
    "SqsQueue",
    "SqsTransport",
    "TriggeredQueue",
    "open_provisioner",
    "open_transport",
]
