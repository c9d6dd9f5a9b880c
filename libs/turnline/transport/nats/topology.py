"""The streams and consumers a transport needs, as data.  Pure: knows settings, asks no server.

Per queue a work-queue stream with its consumers, a stream of dead letters, and a small one that
counts unspent deliveries.  ADR 0008 says why.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from turnline.transport.nats.options import NatsOptions, QueueOptions
from turnline.transport.nats.subjects import dead_stream, unspent_stream

Value = str | int | bool | tuple[str, ...]

SECOND = 1_000_000_000
# Pulls that may wait at one consumer, over all processes; the server's own default is 512.
MAX_WAITING = 4096
# A count of unspent deliveries is one short message; the oldest give way, which over-counts.
MAX_UNSPENT = 100_000
# The server's own, where a stream does not say.
DEFAULT_DUPLICATE_WINDOW = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSpec:
    """A durable pull consumer.

    Attributes:
        config: what must be so, by the server's own names; durations in nanoseconds.
    """

    stream: str
    name: str
    config: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSpec:
    """A stream.

    Attributes:
        config: what must be so, by the server's own names; durations in nanoseconds.
    """

    name: str
    config: Mapping[str, Value]


Spec = StreamSpec | ConsumerSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """All objects."""

    streams: tuple[StreamSpec, ...]
    consumers: tuple[ConsumerSpec, ...]

    @property
    def objects(self) -> tuple[Spec, ...]:
        """Streams and consumers, in the order in which to create them."""
        return self.streams + self.consumers


def topology_of(options: NatsOptions) -> Topology:
    """Give what both queues need."""
    streams: list[StreamSpec] = []
    consumers: list[ConsumerSpec] = []
    for queue in options.queues:
        streams += (_work(options, queue), _dead(options, queue), _unspent(options, queue))
        consumers += consumers_of(options, queue)
    return Topology(streams=tuple(streams), consumers=tuple(consumers))


def consumers_of(options: NatsOptions, queue: QueueOptions) -> tuple[ConsumerSpec, ...]:
    """Give the consumers of one queue: one, or with `max_ack_pending` one per partition."""
    if options.max_ack_pending is None:
        filters = {f"{queue.stream}-all": f"{queue.prefix}.>"}
    else:
        filters = {
            f"{queue.stream}-p{number}": f"{queue.prefix}.{number}.>"
            for number in range(options.partitions)
        }
    return tuple(
        ConsumerSpec(
            stream=queue.stream,
            name=name,
            config={
                "durable_name": name,
                "filter_subject": subjects,
                "deliver_policy": "all",
                "ack_policy": "explicit",
                "ack_wait": round(options.ack_wait * SECOND),
                # No ceiling: the server would strand the message with nobody to answer for it.
                "max_deliver": -1,
                "max_ack_pending": options.max_ack_pending or -1,
                "max_waiting": MAX_WAITING,
            },
        )
        for name, subjects in filters.items()
    )


def _work(options: NatsOptions, queue: QueueOptions) -> StreamSpec:
    share = min(queue.max_per_session, options.max_messages)
    window = options.duplicate_window or DEFAULT_DUPLICATE_WINDOW
    if options.max_age:
        window = min(window, options.max_age)
    return StreamSpec(
        name=queue.stream,
        config={
            **_common(options),
            # Stated on the server, so that processes of two counts, which would put one session on
            # two subjects and out of order, do not start.
            "description": f"sessions in {options.partitions} partitions",
            "subjects": _work_subjects(options, queue),
            "retention": "workqueue",
            "discard": "new",
            "discard_new_per_subject": share > 0,
            "max_msgs": options.max_messages,
            "max_msgs_per_subject": share or -1,
            "max_age": round(options.max_age * SECOND),
            "duplicate_window": round(window * SECOND),
        },
    )


def _work_subjects(options: NatsOptions, queue: QueueOptions) -> tuple[str, ...]:
    if options.max_ack_pending is None:
        return (f"{queue.prefix}.>",)
    # Named one by one, so that a producer with other partitions is refused instead of unread.
    return tuple(f"{queue.prefix}.{number}.>" for number in range(options.partitions))


def _dead(options: NatsOptions, queue: QueueOptions) -> StreamSpec:
    name = dead_stream(queue.stream)
    return StreamSpec(
        name=name,
        config={
            **_common(options),
            "subjects": (f"{name}.>",),
            "retention": "limits",
            "discard": "old",
            "max_msgs": options.max_dead_letters,
            # Burying a message again after a crash replaces its letter.
            "max_msgs_per_subject": 1,
            "max_age": 0,
        },
    )


def _unspent(options: NatsOptions, queue: QueueOptions) -> StreamSpec:
    name = unspent_stream(queue.stream)
    return StreamSpec(
        name=name,
        config={
            **_common(options),
            "subjects": (f"{name}.*",),
            "retention": "limits",
            "discard": "old",
            "max_msgs": MAX_UNSPENT,
            "max_msgs_per_subject": 1,
            "max_age": round(options.max_age * SECOND),
        },
    )


def _common(options: NatsOptions) -> dict[str, Value]:
    return {"storage": "file", "num_replicas": options.replicas, "allow_direct": True}
