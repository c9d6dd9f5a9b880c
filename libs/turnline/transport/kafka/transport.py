"""Both queues over the brokers of one cluster; see `turnline.transport.Transport`."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Self

from confluent_kafka import Consumer

from turnline.config import Settings
from turnline.protocol.clock import Clock
from turnline.telemetry import get_logger
from turnline.transport.background import Background
from turnline.transport.kafka import provision
from turnline.transport.kafka.admin import Admin
from turnline.transport.kafka.bookkeeping import LocalBookkeeping
from turnline.transport.kafka.clients import (
    admin_config,
    check_client_config,
    made,
    member_config,
    producer_config,
    reader_config,
)
from turnline.transport.kafka.commit_reader import CommitReader
from turnline.transport.kafka.options import (
    HEADER_ROOM_BYTES,
    KafkaOptions,
    options_from,
)
from turnline.transport.kafka.producer import ConfirmedProducer
from turnline.transport.kafka.queue import KafkaQueue
from turnline.transport.kafka.reader import LogReader
from turnline.transport.kafka.tools import Tools
from turnline.transport.kafka.topology import topology_of
from turnline.transport.port import Bookkeeping

_log = get_logger("transport")

_FINISH_SECONDS = 1.0


class KafkaTransport:
    """An input and an output queue on Kafka; enter it once."""

    def __init__(
        self, options: KafkaOptions, clock: Clock, bookkeeping: Bookkeeping | None = None
    ) -> None:
        check_client_config(options.client_config)
        self._options = options
        seconds = options.request_timeout
        self._tools = Tools(
            admin=Admin(admin_config(options), seconds=seconds),
            producer=ConfirmedProducer(
                producer_config(options), delivery_timeout=options.delivery_timeout
            ),
            reader=LogReader(reader_config(options), seconds=seconds),
            commits=CommitReader(reader_config(options), seconds=seconds),
            background=Background(),
            books=bookkeeping or LocalBookkeeping(clock),
        )
        self._input = KafkaQueue(
            queue=options.input, options=options, tools=self._tools, clock=clock
        )
        self._output = KafkaQueue(
            queue=options.output, options=options, tools=self._tools, clock=clock
        )
        self._parts = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._tools.admin.open()
        try:
            self._check_members()
            # First: it gets ready while the brokers are asked.
            self._tools.producer.open()
            self._tools.reader.open()
            self._tools.commits.open()
            partitions = await self._tools.admin.greet(self._options.metadata_timeout)
            provision.check(partitions, topology_of(self._options))
            configs = {
                q.topic: await self._tools.admin.configs(q.topic) for q in self._options.queues
            }
            provision.check_policies({name: c["cleanup.policy"] for name, c in configs.items()})
            for queue in (self._input, self._output):
                queue.open(partitions, self._max_bytes(configs[queue.options.topic]))
            await self._start()
        except BaseException:
            await self._close_clients()
            raise
        self._say_what_limits(partitions)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Hand back what is held and close; an error inside is none of the tasks' business."""
        await self._parts.aclose()

    @property
    def input(self) -> KafkaQueue:
        """Requests, from request handlers and gateways to runners."""
        return self._input

    @property
    def output(self) -> KafkaQueue:
        """Answers, from runners to responders."""
        return self._output

    async def check(self) -> None:
        """Return if a broker answers now."""
        await self._tools.admin.check(self._options.input.topic)

    def _check_members(self) -> None:
        """Find out now whether the library takes the settings of members, not when one reads."""
        if self._options.client_config:
            for queue in self._options.queues:
                made(Consumer, member_config(self._options, queue)).close()

    def _max_bytes(self, configs: Mapping[str, str]) -> int:
        room = int(configs["max.message.bytes"]) - HEADER_ROOM_BYTES
        return max(1, min(room, self._options.max_bytes or room))

    async def _start(self) -> None:
        tasks = await self._parts.enter_async_context(asyncio.TaskGroup())
        self._tools.background.open(tasks)
        helpers = [tasks.create_task(part) for part in (self._input.tend(), self._output.tend())]
        self._parts.push_async_callback(self._stop, helpers)

    async def _stop(self, helpers: list[asyncio.Task[None]]) -> None:
        try:
            for helper in helpers:
                helper.cancel()
            await asyncio.wait(helpers)
            async with asyncio.TaskGroup() as closing:
                closing.create_task(self._input.close())
                closing.create_task(self._output.close())
            await self._tools.background.close(_FINISH_SECONDS)
        finally:
            await self._close_clients()

    async def _close_clients(self) -> None:
        await self._tools.reader.close()
        await self._tools.commits.close()
        await self._tools.producer.close()
        await self._tools.admin.close()

    def _say_what_limits(self, partitions: Mapping[str, int]) -> None:
        for queue in self._options.queues:
            count = partitions[queue.topic]
            too_few = count < queue.no_of_consumers
            say = _log.warning if too_few else _log.info
            say(
                "transport.consumers",
                queue=queue.name,
                partitions=count,
                consumers=queue.no_of_consumers,
                server_consumers=1,
                limit="one turn per session; execution.max_concurrency turns per process; "
                f"at most {count} processes share the queue",
            )


def open_transport(
    settings: Settings, clock: Clock, bookkeeping: Bookkeeping | None = None
) -> KafkaTransport:
    """Make the transport that `execution.queues.kafka` describes; enter it to connect.

    Args:
        bookkeeping: counts and ids shared with other processes; None: kept in this one.
    """
    return KafkaTransport(options_from(settings), clock, bookkeeping)
