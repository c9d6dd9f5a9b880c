"""Both queues over one connection; see `turnline.transport.Transport`."""

import asyncio
from contextlib import AsyncExitStack
from typing import Self

from turnline.config import Settings
from turnline.protocol.clock import Clock
from turnline.telemetry import get_logger
from turnline.transport.nats import provision
from turnline.transport.nats.connection import Connection
from turnline.transport.nats.jetstream import JetStream
from turnline.transport.nats.options import NatsOptions, options_from
from turnline.transport.nats.queue import NatsQueue
from turnline.transport.nats.topology import consumers_of, topology_of

_log = get_logger("transport")


class NatsTransport:
    """An input and an output queue on JetStream; enter it once."""

    def __init__(self, options: NatsOptions, clock: Clock) -> None:
        self._options = options
        self._connection = Connection(options.server, clock)
        self._input = NatsQueue(
            queue=options.input, options=options, connection=self._connection, clock=clock
        )
        self._output = NatsQueue(
            queue=options.output, options=options, connection=self._connection, clock=clock
        )
        self._parts = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._connection.open()
        try:
            await provision.check(
                JetStream(self._connection),
                topology_of(self._options),
                create_missing=self._options.auto_provision,
            )
            await self._start()
        except BaseException:
            await self._connection.close()
            raise
        self._say_what_limits()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Hand back what is held and close; an error inside is none of the tasks' business."""
        await self._parts.aclose()

    @property
    def input(self) -> NatsQueue:
        """Requests, from request handlers and gateways to runners."""
        return self._input

    @property
    def output(self) -> NatsQueue:
        """Answers, from runners to responders."""
        return self._output

    async def check(self) -> None:
        """Return if the broker answers now."""
        await self._connection.check()

    async def _start(self) -> None:
        await self._input.open()
        await self._output.open()
        tasks = await self._parts.enter_async_context(asyncio.TaskGroup())
        helpers = [
            tasks.create_task(part)
            for part in (self._connection.run(), self._input.tend(), self._output.tend())
        ]
        self._parts.push_async_callback(self._stop, helpers)

    async def _stop(self, helpers: list[asyncio.Task[None]]) -> None:
        try:
            async with asyncio.TaskGroup() as closing:
                closing.create_task(self._input.close())
                closing.create_task(self._output.close())
        finally:
            for helper in helpers:
                helper.cancel()
            await self._connection.close()

    def _say_what_limits(self) -> None:
        options = self._options
        for queue in options.queues:
            _log.info(
                "transport.consumers",
                queue=queue.name,
                partitions=options.partitions,
                consumers=queue.no_of_consumers,
                server_consumers=len(consumers_of(options, queue)),
                limit=_limit(options),
            )


def _limit(options: NatsOptions) -> str:
    if options.max_ack_pending is None:
        return "one turn per session; execution.max_concurrency turns per process"
    return f"{options.max_ack_pending} turns per partition"


def open_transport(settings: Settings, clock: Clock) -> NatsTransport:
    """Make the transport that `execution.queues.nats` describes; enter it to connect."""
    return NatsTransport(options_from(settings), clock)
