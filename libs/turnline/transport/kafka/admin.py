"""Questions to the brokers, and what is made on them; each answered within a deadline."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from turnline.errors import ConfigurationError, TransportUnavailableError
from turnline.transport.kafka.clients import made
from turnline.transport.kafka.errors import kafka_error, refusal, unavailable
from turnline.transport.kafka.threads import OwnThread

_library_log = logging.getLogger("librdkafka")
_T = TypeVar("_T")

_TRIES = 10
_AGAIN_SECONDS = 0.1
# What the client knows of leaders is out of date: brokers were started anew, or one was chosen.
_OUTDATED = frozenset(
    {
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError._NOENT,
    }
)

# partition -> offset
Offsets = Mapping[int, int]


class Admin:
    """One client for all that is asked apart from sending and receiving."""

    def __init__(self, config: dict[str, Any], *, seconds: float) -> None:
        self._config = config
        self._seconds = seconds
        self._client: AdminClient | None = None
        self._heard: list[KafkaError] = []
        # So that checks that hang take the threads of nobody else.
        self._thread = OwnThread("kafka-check")

    def open(self) -> None:
        """Make the client; needs no broker."""
        config = {**self._config, "error_cb": self._heard.append}
        self._client = made(lambda c: AdminClient(c, logger=_library_log), config)
        self._thread.open()

    async def close(self) -> None:
        """Let it go, in a thread: its end may wait for its brokers."""
        self._thread.close()
        clients, self._client = [self._client], None
        await asyncio.to_thread(clients.clear)

    async def check(self, topic: str) -> None:
        """Return if a broker answers now: any of them, asked about a topic.

        What the library asks of a controller it holds back while the one it knows of is dead.
        """
        client = self._live()
        try:
            await self._thread.call(lambda: client.list_topics(topic, timeout=self._seconds))
        except KafkaException as error:
            raise unavailable(error, "does not answer") from error

    async def greet(self, seconds: float) -> Mapping[str, int]:
        """Ask for the topics as `topics` does, for the first time.

        Raises:
            ConfigurationError: no broker answers, and one said why it never will.
        """
        client = self._live()
        try:
            return await self.topics(seconds)
        except TransportUnavailableError as error:
            client.poll(0)  # has what was heard told
            faults = [fault for told in self._heard if (fault := refusal(told))]
            if faults:
                raise ConfigurationError(faults[:1]) from error
            # A listener that asks for TLS or a password hangs up without a word.
            raise unavailable(
                None,
                "does not answer; if it runs, see whether security.protocol is what it speaks",
            ) from error
        finally:
            self._heard.clear()

    async def topics(self, seconds: float) -> Mapping[str, int]:
        """Give every topic there is, with the number of its partitions."""
        client = self._live()
        try:
            found = await asyncio.to_thread(client.list_topics, timeout=seconds)
        except KafkaException as error:
            raise unavailable(error, "does not answer") from error
        return {
            name: len(topic.partitions) for name, topic in found.topics.items() if not topic.error
        }

    async def replicas(self, topic: str) -> int:
        """Give how many copies a topic has."""
        client = self._live()
        try:
            found = await asyncio.to_thread(client.list_topics, topic, timeout=self._seconds)
        except KafkaException as error:
            raise unavailable(error, "does not answer") from error
        partitions = found.topics[topic].partitions
        return min((len(each.replicas) for each in partitions.values()), default=0)

    async def configs(self, topic: str) -> Mapping[str, str]:
        """Give the settings of a topic, the brokers' defaults included."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        futures = self._live().describe_configs([resource], request_timeout=self._seconds)
        found = await self._answer(futures[resource])
        return {name: str(entry.value) for name, entry in found.items()}

    async def ends(self, topic: str, partitions: Iterable[int]) -> Offsets:
        """Give the offset behind the last record of each partition."""
        return await self._list_offsets(topic, partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]  # not annotated

    async def starts(self, topic: str, partitions: Iterable[int]) -> Offsets:
        """Give the offset of the first record of each partition that is still there."""
        return await self._list_offsets(topic, partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]  # as above

    async def delete_before(self, topic: str, offsets: Offsets) -> None:
        """Delete all records below these offsets."""
        asked = [TopicPartition(topic, number, offset) for number, offset in offsets.items()]
        futures = self._live().delete_records(asked, request_timeout=self._seconds)
        for future in futures.values():
            await self._answer(future)

    async def create(self, topic: NewTopic) -> None:
        """Create a topic."""
        futures = self._live().create_topics(
            [topic], request_timeout=self._seconds, operation_timeout=self._seconds
        )
        await self._answer(futures[topic.topic])

    async def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions."""
        asked = NewPartitions(topic, partitions)
        futures = self._live().create_partitions([asked], request_timeout=self._seconds)
        await self._answer(futures[topic])

    async def configure(self, topic: str, configs: Mapping[str, str]) -> None:
        """Change settings of a topic, and no others."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in configs.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        futures = self._live().incremental_alter_configs([resource], request_timeout=self._seconds)
        await self._answer(futures[resource])

    async def _list_offsets(
        self, topic: str, partitions: Iterable[int], spec: OffsetSpec
    ) -> Offsets:
        asked = {TopicPartition(topic, number): spec for number in partitions}
        if not asked:
            return {}
        for _ in range(_TRIES):
            try:
                return await self._ask_offsets(asked)
            except TransportUnavailableError as error:
                if _code(error) not in _OUTDATED:
                    raise
                # By itself it asks for the leaders within minutes only.
                await self.topics(self._seconds)
                await asyncio.sleep(_AGAIN_SECONDS)
        return await self._ask_offsets(asked)

    async def _ask_offsets(self, asked: dict[TopicPartition, OffsetSpec]) -> Offsets:
        futures = self._live().list_offsets(asked, request_timeout=self._seconds)
        return {key.partition: (await self._answer(each)).offset for key, each in futures.items()}

    async def _answer(self, future: "Future[_T]") -> _T:
        try:
            async with asyncio.timeout(self._seconds + 1.0):
                return await asyncio.wrap_future(future)
        except KafkaException as error:
            raise unavailable(error, "does not answer as it should") from error
        except TimeoutError as error:
            raise unavailable(None, "does not answer") from error

    def _live(self) -> AdminClient:
        if self._client is None:
            raise TransportUnavailableError("The transport is closed")
        return self._client


def _code(error: TransportUnavailableError) -> int | None:
    """Give the library's number for what went wrong; None: it was not the library."""
    cause = error.__cause__
    told = kafka_error(cause) if isinstance(cause, KafkaException) else None
    return None if told is None else told.code()
