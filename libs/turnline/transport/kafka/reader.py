"""Reads stretches of a topic apart from any group: dead letters, and the age of what waits.

The consumer lives in one thread, made at the first use.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from turnline.transport.kafka.clients import made
from turnline.transport.kafka.errors import unavailable
from turnline.transport.kafka.threads import OwnThread

_library_log = logging.getLogger("librdkafka")
_T = TypeVar("_T")

# partition -> first offset, and the one behind the last.
Spans = Mapping[int, tuple[int, int]]


class LogReader:
    """One reader for all topics of a transport."""

    def __init__(self, config: dict[str, Any], *, seconds: float) -> None:
        self._config = {**config, "enable.partition.eof": True}
        self._seconds = seconds
        self._consumer: Consumer | None = None
        self._thread = OwnThread("kafka-reader")

    def open(self) -> None:
        """Begin to serve; needs no broker."""
        self._thread.open()

    async def close(self) -> None:
        """End; a read that hangs ends at its deadline, with nobody waiting."""
        self._thread.close(self._drop)

    async def read(
        self, topic: str, spans: Spans, pick: Callable[[Message], _T | None]
    ) -> list[_T]:
        """Give what `pick` makes of each record in these spans, without None; called in a thread.

        Raises:
            TransportUnavailableError: it could not all be read in time.
        """
        wanted = {number: span for number, span in spans.items() if span[0] < span[1]}
        if not wanted:
            return []
        return await self._thread.call(lambda: self._read(topic, wanted, pick))

    def _read(self, topic: str, spans: Spans, pick: Callable[[Message], _T | None]) -> list[_T]:
        if self._consumer is None:
            self._consumer = made(lambda c: Consumer(c, logger=_library_log), self._config)
        consumer = self._consumer
        try:
            consumer.assign([TopicPartition(topic, n, span[0]) for n, span in spans.items()])
            try:
                return self._collect(consumer, spans, pick)
            finally:
                consumer.unassign()
        except KafkaException as error:
            raise unavailable(error, "can't be read") from error

    def _collect(
        self, consumer: Consumer, spans: Spans, pick: Callable[[Message], _T | None]
    ) -> list[_T]:
        left = {number: span[1] for number, span in spans.items()}
        until = time.monotonic() + self._seconds
        found: list[_T] = []
        while left:
            if time.monotonic() > until:
                raise unavailable(None, "can't be read in time")
            message = consumer.poll(0.2)
            if message is None:
                continue
            number, offset = message.partition() or 0, message.offset() or 0
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    left.pop(number, None)
                continue
            if offset < left.get(number, 0):
                picked = pick(message)
                if picked is not None:
                    found.append(picked)
            if offset + 1 >= left.get(number, 0):
                left.pop(number, None)
        return found

    def _drop(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
