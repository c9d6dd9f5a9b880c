"""How long a delivery's lease is, and how long a retry waits, on the transport in use."""

from dataclasses import dataclass

from turnline.config import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueTiming:
    """Times of one transport, in seconds.

    Attributes:
        lease: after which an unrenewed delivery comes back.
        retry_backoff: pause before a second attempt; doubles with each further one.
    """

    lease: float
    retry_backoff: float


def queue_timing(settings: Settings) -> QueueTiming:
    """Read the times of the transport that `execution.queues.type` names."""
    queues = settings.execution.queues
    match queues.type:
        case "nats":
            return QueueTiming(lease=queues.nats.ack_wait, retry_backoff=queues.nats.retry_backoff)
        case "kafka":
            return QueueTiming(
                lease=queues.kafka.ack_wait, retry_backoff=queues.kafka.retry_backoff
            )
        case "sqs":
            return QueueTiming(
                lease=queues.sqs.visibility_timeout, retry_backoff=queues.sqs.retry_backoff
            )
        case _:
            memory = queues.in_memory
            return QueueTiming(lease=memory.ack_wait, retry_backoff=memory.retry_backoff)
