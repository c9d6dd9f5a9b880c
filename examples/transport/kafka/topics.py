"""What lies on the topics, read without disturbing the groups.

    ./pants run examples/transport/kafka:topics -- localhost:9092

A record stays on a topic when its turn is done; what is left to do begins at the group's committed
offset, and what is done behind it is noted in the commit (docs/adr/0010).  Prompts and answers are
not shown.
"""

import argparse
import time
from collections.abc import Iterator, Sequence

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

# Topic and group of each queue, as the settings name them by default.
QUEUES = (("agent-input", "agent-kernel-input"), ("agent-output", "agent-kernel-output"))
DEAD_SUFFIX = ".dlq"
SHOWN_HEADERS = ("request_id", "user_id", "status_code", "turnline-attempt", "turnline-reason")
WAIT_SECONDS = 10.0


def main(bootstrap: str, limit: int) -> None:
    """Print the depth of each topic, and its oldest records that are left to do."""
    for topic, group in QUEUES:
        show(bootstrap, topic, group, limit)
        show(bootstrap, topic + DEAD_SUFFIX, None, limit)


def show(bootstrap: str, topic: str, group: str | None, limit: int) -> None:
    """Print one topic; says so when it is not there.

    Args:
        group: who reads it; None: nobody does, it holds dead letters.
    """
    # It joins no group: it only asks what this one committed.
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group or "inspection",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        known = reader.list_topics(topic, timeout=WAIT_SECONDS).topics[topic]
        if known.error:
            print(f"{topic}: missing; run `turnline provision`")
            return
        partitions = [TopicPartition(topic, number) for number in known.partitions]
        left = list(records(reader, starts(reader, partitions, committed=group is not None)))
        if group is None:
            left = letters(left)
        print(f"{topic}: {len(partitions)} partitions, {len(left)} records left")
        for message in left[:limit]:
            print(f"  {line_of(message)}")
    finally:
        reader.close()


def starts(
    reader: Consumer, partitions: Sequence[TopicPartition], *, committed: bool
) -> Sequence[TopicPartition]:
    """Give where to read from: what the group has committed, or the beginning."""
    known = reader.committed(list(partitions), timeout=WAIT_SECONDS) if committed else partitions
    begun = []
    for each in known:
        oldest, _ = reader.get_watermark_offsets(each, timeout=WAIT_SECONDS)
        begun.append(TopicPartition(each.topic, each.partition, max(each.offset, oldest)))
    return begun


def records(reader: Consumer, begun: Sequence[TopicPartition]) -> Iterator[Message]:
    """Give every record from there to the end of each partition."""
    reader.assign(list(begun))
    open_partitions = {each.partition for each in begun}
    while open_partitions:
        message = reader.poll(WAIT_SECONDS)
        if message is None:
            raise SystemExit("the broker does not answer")
        error = message.error()
        if error is None:
            yield message
        elif error.code() == KafkaError._PARTITION_EOF:
            open_partitions.discard(message.partition() or 0)
        else:
            raise SystemExit(error.str())


def letters(found: Sequence[Message]) -> list[Message]:
    """Leave out letters that were replaced or deleted: the last record of a key counts."""
    alive: dict[bytes | None, Message] = {}
    for message in found:
        alive.pop(message.key(), None)
        if message.value() is not None:
            alive[message.key()] = message
    return list(alive.values())


def line_of(message: Message) -> str:
    """Describe a record."""
    pairs = message.headers() or []
    headers = dict(pairs.items() if isinstance(pairs, dict) else pairs)
    shown = " ".join(f"{name}={_text(headers[name])}" for name in SHOWN_HEADERS if name in headers)
    age = time.time() - message.timestamp()[1] / 1000
    size = len(message.value() or b"")
    return f"{message.partition()}@{message.offset()} {size} bytes {age:.1f} s {shown}"


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bootstrap", nargs="?", default="localhost:9092")
    parser.add_argument("--limit", type=int, default=20, help="records to show of each topic")
    given = parser.parse_args()
    main(given.bootstrap, given.limit)
