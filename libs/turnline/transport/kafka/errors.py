"""What librdkafka's errors mean to us; the one place that knows its codes."""

from confluent_kafka import KafkaError, KafkaException

from turnline.errors import TransportUnavailableError

_RETRY_AFTER_SECONDS = 1.0

# The group has moved on without us: what we hold is not ours any more.
REFUSALS = frozenset(
    {
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.FENCED_INSTANCE_ID,
        KafkaError.FENCED_MEMBER_EPOCH,
        KafkaError._FENCED,
        KafkaError._ASSIGNMENT_LOST,
    }
)
# It may have, or is just about to say that we keep what we hold.
STALE = frozenset({KafkaError.ILLEGAL_GENERATION, KafkaError.STALE_MEMBER_EPOCH})
NO_SUCH_TOPIC = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})
TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})


def kafka_error(error: KafkaException) -> KafkaError | None:
    """Give what the library says is wrong; None: it says nothing."""
    found = error.args[0] if error.args else None
    return found if isinstance(found, KafkaError) else None


def unavailable(error: KafkaError | KafkaException | None, what: str) -> TransportUnavailableError:
    """Make the error for an answer that did not come, or not as it should; `what` is a clause."""
    told = kafka_error(error) if isinstance(error, KafkaException) else error
    reason = f" ({told.name()})" if told is not None else ""
    return TransportUnavailableError(f"Kafka {what}{reason}", retry_after=_RETRY_AFTER_SECONDS)
