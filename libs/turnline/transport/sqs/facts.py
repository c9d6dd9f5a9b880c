"""What is known of a queue once start-up has looked at it."""

from dataclasses import dataclass

from turnline.transport.sqs.options import MOST_BYTES

# What a message's attributes and those of its dead letter may take of its size, which counts both.
ATTRIBUTE_ROOM_BYTES = 8 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFacts:
    """One queue.

    Attributes:
        dead_url: of the queue of its dead letters.
        ceiling: deliveries after which SQS gives a message up; 0: unknown.
        largest: bytes of the largest message it takes.
        counted: whether this process may ask how many messages it holds.
    """

    dead_url: str
    ceiling: int = 0
    largest: int = MOST_BYTES
    counted: bool = True

    @property
    def message_bytes(self) -> int:
        """Bytes of the largest message of ours."""
        return self.largest - ATTRIBUTE_ROOM_BYTES

    @property
    def max_bytes(self) -> int:
        """Bytes of the largest envelope, encoded as Protobuf: as base64 it fits a message."""
        return self.message_bytes // 4 * 3
