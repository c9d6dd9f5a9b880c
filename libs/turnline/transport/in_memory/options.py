"""Bounds and times of the in_memory transport.

`ack_wait` and `dedup_window` are the guide's settings of `execution.queues.in_memory`.
"""

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class InMemoryOptions:
    """How much each of the two queues holds, and for how long.

    Attributes:
        ack_wait: the lease; seconds after which an unsettled delivery comes back.
        dedup_window: seconds within which a second envelope of one `dedup_id` is dropped; 0 turns
            this off.
        max_messages: envelopes held, waiting and out for delivery together, 1 or more.
        max_messages_per_session: one session's share of the input queue; 0 means all of it.  The
            output queue has no shares.
        max_bytes: largest encoded envelope.
        max_queue_bytes: encoded envelopes held, all together, so that large ones do not fill the
            process's memory before `max_messages` is reached.
        max_dead_letters: dead letters held; the oldest gives way.
        max_dead_letter_bytes: their bytes, likewise.
        max_dedup_ids: ids remembered at once, about 300 bytes each; past this the oldest is
            forgotten before its window ends.
    """

    ack_wait: float = 10.0
    dedup_window: float = 300.0
    max_messages: int = 10_000
    max_messages_per_session: int = 100
    max_bytes: int = MIB
    max_queue_bytes: int = 256 * MIB
    max_dead_letters: int = 1_000
    max_dead_letter_bytes: int = 64 * MIB
    max_dedup_ids: int = 200_000
