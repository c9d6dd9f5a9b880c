"""What groups have committed, asked by a consumer that joins none of them.

librdkafka's admin client knows the question too, but an answer that comes after its time ends the
process (librdkafka#4605), and after a broker's restart it may never come.  A consumer finds a
group's coordinator anew by itself.  Consumers live in one thread, made at the first use.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from turnline.transport.kafka.clients import made
from turnline.transport.kafka.errors import unavailable
from turnline.transport.kafka.threads import OwnThread

_library_log = logging.getLogger("librdkafka")

# partition -> offset and text of its commit
Commits = Mapping[int, tuple[int, str]]


class CommitReader:
    """One for all groups of a transport."""

    def __init__(self, config: dict[str, Any], *, seconds: float) -> None:
        """Wire it; `config` is that of a reader, `seconds` how long an answer may take."""
        self._config = config
        self._seconds = seconds
        self._consumers: dict[str, Consumer] = {}
        self._thread = OwnThread("kafka-commits")

    def open(self) -> None:
        """Begin to serve; needs no broker."""
        self._thread.open()

    async def close(self) -> None:
        """End; a question that hangs ends at its deadline, with nobody waiting."""
        self._thread.close(self._drop)

    async def read(self, group: str, topic: str, partitions: Iterable[int]) -> Commits:
        """Give what a group committed of partitions that have a commit.

        Raises:
            TransportUnavailableError: its coordinator did not answer in time.
        """
        asked = [TopicPartition(topic, number) for number in partitions]
        return await self._thread.call(lambda: self._read(group, asked))

    def _read(self, group: str, asked: list[TopicPartition]) -> Commits:
        if group not in self._consumers:
            config = {**self._config, "group.id": group}
            self._consumers[group] = made(lambda c: Consumer(c, logger=_library_log), config)
        try:
            found = self._consumers[group].committed(asked, timeout=self._seconds)
        except KafkaException as error:
            raise unavailable(error, "does not tell what was committed") from error
        return {
            each.partition: (each.offset, each.metadata or "") for each in found if each.offset >= 0
        }

    def _drop(self) -> None:
        for consumer in self._consumers.values():
            consumer.close()
        self._consumers.clear()
