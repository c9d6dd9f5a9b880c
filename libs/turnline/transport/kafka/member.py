"""One member of a consumer group: the thread in which librdkafka's consumer lives.

The consumer is touched by this thread alone.  It polls all the time, so a slow reader never makes
the group take us for dead; what it reads it hands to the loop, and what the loop asks for (commits,
pauses) it does between two polls.  It is made anew when it broke for good.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from turnline.errors import ConfigurationError
from turnline.telemetry import get_logger
from turnline.transport.kafka.clients import made
from turnline.transport.kafka.errors import kafka_error
from turnline.transport.kafka.holding import Holding, Record, record_of
from turnline.transport.kafka.progress import MAX_SPAN, Progress

_log = get_logger("transport")
_library_log = logging.getLogger("librdkafka")

# What the loop asks for waits for the end of a poll: short ones while an ack is near.
_POLL_BUSY_SECONDS = 0.002
_POLL_HELD_SECONDS = 0.01
_POLL_IDLE_SECONDS = 0.1
_BUSY_FOR_SECONDS = 0.25
_MAX_BATCH = 500
_MAX_BUFFERED = 4_000
_MAX_WEIGHT = 64 * 1024 * 1024
_COMMITTED_SECONDS = 5.0
_COMMITTED_TRIES = 4
_AGAIN_SECONDS = 1.0

# How long a partition that is taken away waits for the deliveries that are out.
REVOKE_GRACE_SECONDS = 3.0

Offsets = Sequence[TopicPartition]


class MemberEvents(Protocol):
    """Who a member works for.  Called in the loop, in the order of what happened."""

    def assigned(self, holdings: Sequence[Holding]) -> None:
        """Partitions are ours."""
        ...

    def leaving(self, holdings: Sequence[Holding], gone: Callable[[], None]) -> None:
        """Partitions are to be given up: call `gone` when nothing of them is out, and soon."""
        ...

    def lost(self, holdings: Sequence[Holding]) -> None:
        """Partitions are not ours any more."""
        ...

    def records(self, records: Sequence[Record]) -> None:
        """Records were read, of several partitions, each's in order."""
        ...

    def committed(self, error: KafkaError | None, offsets: Offsets) -> None:
        """The oldest commit that was not reported yet ended."""
        ...


class Member:
    """A member, from `start` to `close`."""

    def __init__(self, config: dict[str, Any], topic: str, events: MemberEvents) -> None:
        self._config = {
            **config,
            "error_cb": self._heard_error,
            "on_commit": self._heard_commit,
        }
        self._topic = topic
        self._events = events
        self._loop = asyncio.get_running_loop()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kafka-member", daemon=True)
        self._owned: dict[int, Holding] = {}
        self._paused: set[int] = set()
        self._wanted: deque[Offsets] = deque()
        self._resting = False
        self._broken = False
        self._stirred = 0.0
        self._down_since: float | None = None

    def start(self) -> None:
        """Join the group, sooner or later."""
        self._thread.start()

    def commit(self, offsets: Offsets) -> None:
        """Have offsets committed soon; `committed` reports one end for each call, in order."""
        self._wanted.append(offsets)

    def renew(self) -> None:
        """Leave the group and join it anew: it does not know us any more."""
        self._broken = True

    def rest(self, resting: bool) -> None:
        """Read nothing new meanwhile: nobody wants it."""
        self._resting = resting

    async def close(self, seconds: float) -> bool:
        """Leave the group; return whether that was done within `seconds`."""
        self._stopping.set()
        await asyncio.to_thread(self._thread.join, seconds)
        return not self._thread.is_alive()

    # --- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                consumer = made(lambda c: Consumer(c, logger=_library_log), dict(self._config))
            except ConfigurationError as error:
                _log.error(
                    "dependency.unavailable",
                    dependency="kafka",
                    reason=error.message,
                )
                return
            self._broken = False
            try:
                self._poll_until_over(consumer)
            except KafkaException as error:
                self._note_down(str(error))
            finally:
                with suppress(KafkaException, RuntimeError):
                    consumer.close()
                self._lose(list(self._owned.values()))
                self._paused.clear()
            if not self._stopping.is_set():
                self._stopping.wait(_AGAIN_SECONDS)

    def _poll_until_over(self, consumer: Consumer) -> None:
        consumer.subscribe(
            [self._topic],
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_lost,
        )
        while not self._stopping.is_set() and not self._broken:
            self._send_commit(consumer)
            self._steer(consumer)
            self._read(consumer)
        self._send_commit(consumer)

    def _read(self, consumer: Consumer) -> None:
        records: list[Record] = []
        message = consumer.poll(self._poll_seconds())
        while message is not None:
            record = self._taken(message)
            if record is not None:
                records.append(record)
            if len(records) >= _MAX_BATCH:
                break
            message = consumer.poll(0)
        if records:
            self._stirred = time.monotonic()
            self._tell(self._events.records, records)

    def _taken(self, message: Message) -> Record | None:
        error = message.error()
        if error is not None:
            self._heard_error(error)
            return None
        self._note_up()
        holding = self._owned.get(message.partition() or 0)
        if holding is None:
            return None
        record = record_of(message, holding)
        holding.note_read(record)
        return record

    def _poll_seconds(self) -> float:
        if time.monotonic() - self._stirred < _BUSY_FOR_SECONDS:
            return _POLL_BUSY_SECONDS
        if any(holding.buffered for holding in self._owned.values()):
            return _POLL_HELD_SECONDS
        return _POLL_IDLE_SECONDS

    def _send_commit(self, consumer: Consumer) -> None:
        while self._wanted:
            offsets = self._wanted.popleft()
            self._stirred = time.monotonic()
            try:
                consumer.commit(offsets=list(offsets), asynchronous=True)
            except KafkaException as error:
                self._tell(self._events.committed, kafka_error(error), offsets)

    def _steer(self, consumer: Consumer) -> None:
        """Pause partitions of which enough was read, and take up those of which room came back."""
        weight = sum(holding.weight for holding in self._owned.values())
        stop: list[TopicPartition] = []
        go: list[TopicPartition] = []
        for number, holding in list(self._owned.items()):
            share = 0.5 if number in self._paused else 1.0
            full = (
                self._resting
                or holding.buffered >= _MAX_BUFFERED * share
                or holding.span >= MAX_SPAN * share
                or weight >= _MAX_WEIGHT * share
            )
            if full != (number in self._paused):
                (stop if full else go).append(TopicPartition(self._topic, number))
        if stop:
            consumer.pause(stop)
            self._paused.update(each.partition for each in stop)
        if go:
            consumer.resume(go)
            self._paused.difference_update(each.partition for each in go)

    # --- what the library calls, inside `poll` and `close` ----------------------------------------

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        starts = self._starts(consumer, partitions)
        holdings = []
        for start in starts:
            known = start.offset if start.offset >= 0 else None
            progress = Progress(known, start.metadata or "")
            holdings.append(Holding(partition=start.partition, progress=progress))
        self._owned.update({holding.partition: holding for holding in holdings})
        self._tell(self._events.assigned, holdings)
        self._stirred = time.monotonic()
        assigned = [TopicPartition(self._topic, each.partition, each.offset) for each in starts]
        consumer.incremental_assign(assigned)
        if assigned:
            # The library may remember that they were paused when they were ours before.
            consumer.resume(assigned)

    def _starts(self, consumer: Consumer, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Ask what is committed; without an answer the library begins there, gaps unknown."""
        asked = [TopicPartition(self._topic, each.partition) for each in partitions]
        if not asked:
            return []
        for _ in range(_COMMITTED_TRIES):
            if self._stopping.is_set():
                break
            try:
                return consumer.committed(asked, timeout=_COMMITTED_SECONDS)
            except KafkaException as error:
                self._note_down(str(error))
        return asked

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        holdings = self._held(partitions)
        if holdings:
            gone = threading.Event()
            if self._tell(self._events.leaving, holdings, gone.set):
                gone.wait(0.5 if self._stopping.is_set() else REVOKE_GRACE_SECONDS)
            self._send_commit(consumer)
        self._lose(holdings)
        consumer.incremental_unassign(partitions)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._lose(self._held(partitions))
        consumer.incremental_unassign(partitions)

    def _held(self, partitions: list[TopicPartition]) -> list[Holding]:
        return [self._owned[each.partition] for each in partitions if each.partition in self._owned]

    def _lose(self, holdings: list[Holding]) -> None:
        for holding in holdings:
            holding.lost = True
            self._owned.pop(holding.partition, None)
            self._paused.discard(holding.partition)
        if holdings:
            self._tell(self._events.lost, holdings)

    def _heard_commit(self, error: KafkaError | None, offsets: list[TopicPartition]) -> None:
        self._stirred = time.monotonic()
        self._tell(self._events.committed, error, offsets)

    def _heard_error(self, error: KafkaError) -> None:
        self._note_down(error.str())
        if error.fatal():
            self._broken = True

    # --- ------------------------------------------------------------------------------------------

    def _tell(self, call: Callable[..., None], *args: object) -> bool:
        """Have the loop called; return whether there still is one."""
        try:
            self._loop.call_soon_threadsafe(call, *args)
        except RuntimeError:  # it is closed
            return False
        return True

    def _note_down(self, reason: str) -> None:
        if self._down_since is None:
            self._down_since = time.monotonic()
            _log.warning("dependency.unavailable", dependency="kafka", reason=reason[:200])

    def _note_up(self) -> None:
        if self._down_since is not None:
            seconds = round(time.monotonic() - self._down_since, 3)
            self._down_since = None
            _log.info("dependency.recovered", dependency="kafka", seconds=seconds)
