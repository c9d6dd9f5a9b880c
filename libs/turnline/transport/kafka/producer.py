"""Sends records and says when all replicas in sync have them.

librdkafka works in threads of its own; one thread here hears what became of each record and tells
the loop.  A producer that broke for good is replaced.
"""

import asyncio
import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from turnline.errors import PayloadTooLargeError, TransportUnavailableError, TurnlineError
from turnline.protocol.deadline import TimeLimit
from turnline.telemetry import get_logger
from turnline.transport.kafka.clients import made
from turnline.transport.kafka.errors import TOO_LARGE, unavailable

_log = get_logger("transport")
_library_log = logging.getLogger("librdkafka")

_POLL_SECONDS = 0.1
_FLUSH_SECONDS = 1.0
_JOIN_SECONDS = 2.5
# What a caller waits beyond the library's own time-out before it takes it for hung.
_MARGIN_SECONDS = 5.0

Place = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A record to be sent.

    Attributes:
        value: None: a tombstone.
        at: seconds since the epoch.
        partition: where; -1: where its key belongs.
    """

    topic: str
    key: bytes
    value: bytes | None
    at: float
    headers: Mapping[str, bytes] = field(default_factory=dict)
    partition: int = -1


class ConfirmedProducer:
    """One producer for all topics of a transport."""

    def __init__(self, config: dict[str, Any], *, delivery_timeout: float) -> None:
        self._config = config
        self._seconds = delivery_timeout + _MARGIN_SECONDS
        self._limit = TimeLimit(self._seconds)
        self._producer: Producer | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = threading.Event()
        self._broken = threading.Event()

    def open(self) -> None:
        """Start it; needs no broker."""
        self._loop = asyncio.get_running_loop()
        # Its timer is one of this loop.
        self._limit = TimeLimit(self._seconds)
        self._stop.clear()
        self._start()

    async def close(self) -> None:
        """Stop within some seconds; what is not confirmed by then is reported as such."""
        self._stop.set()
        thread, self._thread = self._thread, None
        self._producer = None
        if thread is not None:
            await asyncio.to_thread(thread.join, _JOIN_SECONDS)

    async def send(self, record: Outgoing) -> Place:
        """Send one record; return its partition and offset once it is confirmed.

        After a cancellation it may be sent all the same.

        Raises:
            PayloadTooLargeError: the topic takes none as large.
            TransportUnavailableError: no confirmation in time; it may be there or not.
        """
        if self._broken.is_set() and not self._stop.is_set():
            self._replace()
        producer = self._producer
        if producer is None:
            raise TransportUnavailableError("The transport is closed")
        future: asyncio.Future[Place] = asyncio.get_running_loop().create_future()
        try:
            producer.produce(
                record.topic,
                value=record.value,
                key=record.key,
                partition=record.partition,
                headers=dict(record.headers),
                timestamp=round(record.at * 1000),
                on_delivery=lambda error, message: self._delivered(future, error, message),
            )
        except BufferError as error:
            raise unavailable(None, "confirms too slowly; too much is being sent") from error
        except KafkaException as error:
            raise unavailable(error, "did not take a record") from error
        self._limit.add(future)
        try:
            return await future
        except TimeoutError as error:
            raise unavailable(None, "did not confirm a record in time") from error

    def _start(self) -> None:
        self._broken.clear()
        config = {**self._config, "error_cb": self._heard_error}
        producer = made(lambda c: Producer(c, logger=_library_log), config)
        self._producer = producer
        self._thread = threading.Thread(
            target=self._poll, args=(producer,), name="kafka-producer", daemon=True
        )
        self._thread.start()

    def _replace(self) -> None:
        """Make a new one; the old one's thread ends when it sees that it is not in use."""
        _log.warning(
            "dependency.unavailable",
            dependency="kafka",
            reason="the producer broke and is replaced",
        )
        self._start()

    def _poll(self, producer: Producer) -> None:
        while not self._stop.is_set() and self._producer is producer:
            producer.poll(_POLL_SECONDS)
        producer.flush(_FLUSH_SECONDS)
        producer.purge()
        producer.flush(_FLUSH_SECONDS)

    def _heard_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._broken.set()

    def _delivered(
        self, future: "asyncio.Future[Place]", error: KafkaError | None, message: Message
    ) -> None:
        """Hear of a record; in the thread."""
        place = (message.partition() or 0, message.offset() or 0)
        loop = self._loop
        if loop is None or loop.is_closed():
            return
        loop.call_soon_threadsafe(_settle, future, _failure(error), place)


def _settle(future: "asyncio.Future[Place]", error: TurnlineError | None, place: Place) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(place)
    else:
        future.set_exception(error)


def _failure(error: KafkaError | None) -> TurnlineError | None:
    if error is None:
        return None
    if error.code() in TOO_LARGE:
        return PayloadTooLargeError("The topic takes no message as large", limit_bytes=0)
    return unavailable(error, "did not confirm a record")
