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

_CONFIG = "execution.queues.kafka.client_config"
_REFUSALS_TO_TALK = {
    KafkaError._AUTHENTICATION: "the brokers refuse these credentials; see sasl.mechanism, "
    "sasl.username and sasl.password",
    KafkaError._SSL: "TLS with the brokers fails; name what signed their certificate as "
    "ssl.ca.location",
}
_NO_TLS = "the brokers offer no TLS where it is asked for; see security.protocol"
# What the library says of a listener that hangs up on a handshake; it has no code of its own.
_HUNG_UP_ON_TLS = ("SSL handshake failed", "Disconnected")
_TOLD_CHARACTERS = 200


def refusal(error: KafkaError) -> str | None:
    """Say what setting keeps brokers from talking to us at all; None: it is something else."""
    text = _REFUSALS_TO_TALK.get(error.code())
    if text is None and all(part in error.str() for part in _HUNG_UP_ON_TLS):
        text = _NO_TLS
    return text and f"{_CONFIG}: {text} ({error.str()[:_TOLD_CHARACTERS]})"


def kafka_error(error: KafkaException) -> KafkaError | None:
    """Give what the library says is wrong; None: it says nothing."""
    found = error.args[0] if error.args else None
    return found if isinstance(found, KafkaError) else None


def unavailable(error: KafkaError | KafkaException | None, what: str) -> TransportUnavailableError:
    """Make the error for an answer that did not come, or not as it should; `what` is a clause."""
    told = kafka_error(error) if isinstance(error, KafkaException) else error
    reason = f" ({told.name()})" if told is not None else ""
    return TransportUnavailableError(f"Kafka {what}{reason}", retry_after=_RETRY_AFTER_SECONDS)
