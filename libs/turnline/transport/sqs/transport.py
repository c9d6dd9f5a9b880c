"""Both queues over one client; see `turnline.transport.Transport`."""

import asyncio
from contextlib import AsyncExitStack
from typing import Self

from turnline.awssdk import AwsError, AwsFault, refusal
from turnline.config import Settings
from turnline.errors import TransportUnavailableError
from turnline.protocol.clock import Clock
from turnline.telemetry import get_logger
from turnline.transport.background import Background
from turnline.transport.port import Bookkeeping
from turnline.transport.sqs import provision
from turnline.transport.sqs.api import SqsApi, port_error
from turnline.transport.sqs.options import QueueOptions, SqsOptions, options_from
from turnline.transport.sqs.queue import SqsQueue

_log = get_logger("transport")

_FINISH_SECONDS = 1.0


class SqsTransport:
    """An input and an output queue on SQS; enter it once.

    A process that has the URL of one queue only can use that one.

    Args:
        bookkeeping: of the input queue, shared with other processes; None: none is.
    """

    def __init__(
        self, options: SqsOptions, clock: Clock, bookkeeping: Bookkeeping | None = None
    ) -> None:
        self._options = options
        self._api = SqsApi(options.aws, clock, seconds=options.request_timeout)
        self._background = Background()
        self._input = self._queue(options.input, clock, bookkeeping)
        # An answer may be pushed again without harm, so that its count is not worth the calls.
        self._output = self._queue(options.output, clock, None)
        self._parts = AsyncExitStack()

    async def __aenter__(self) -> Self:
        try:
            await self._open_client()
            facts = await provision.check(self._api, self._options)
            for queue in self._used():
                queue.open(facts[queue.options.name])
            await self._start()
        except BaseException:
            await self._api.close()
            raise
        self._say_what_limits()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Hand back what is held and close; an error inside is none of the tasks' business."""
        await self._parts.aclose()

    @property
    def input(self) -> SqsQueue:
        """Requests, from request handlers and gateways to runners."""
        return self._input

    @property
    def output(self) -> SqsQueue:
        """Answers, from runners to responders."""
        return self._output

    async def check(self) -> None:
        """Return if SQS answers now, be it that this process may not ask."""
        if not self._options.queues:
            raise TransportUnavailableError("No SQS queue is named")
        try:
            await self._api.attributes(self._options.queues[0].url)
        except AwsError as error:
            if error.fault is not AwsFault.DENIED:
                raise port_error(error) from error

    def _queue(self, queue: QueueOptions, clock: Clock, books: Bookkeeping | None) -> SqsQueue:
        return SqsQueue(
            queue=queue,
            options=self._options,
            api=self._api,
            background=self._background,
            clock=clock,
            books=books,
        )

    def _used(self) -> tuple[SqsQueue, ...]:
        return tuple(queue for queue in (self._input, self._output) if queue.options.url)

    async def _open_client(self) -> None:
        try:
            await self._api.open()
        except AwsError as error:
            setting = "execution.queues.sqs.region"
            raise refusal(error, doing="make a client of SQS", setting=setting) from error

    async def _start(self) -> None:
        tasks = await self._parts.enter_async_context(asyncio.TaskGroup())
        self._background.open(tasks)
        helpers = [tasks.create_task(queue.tend()) for queue in self._used()]
        self._parts.push_async_callback(self._stop, helpers)

    async def _stop(self, helpers: list[asyncio.Task[None]]) -> None:
        try:
            async with asyncio.TaskGroup() as closing:
                for queue in self._used():
                    closing.create_task(queue.close())
            await self._background.close(_FINISH_SECONDS)
        finally:
            for helper in helpers:
                helper.cancel()
            await self._api.close()

    def _say_what_limits(self) -> None:
        for queue in self._options.queues:
            _log.info(
                "transport.consumers",
                queue=queue.name,
                partitions=0,
                consumers=queue.no_of_consumers,
                server_consumers=1,
                limit="one turn per session; execution.max_concurrency turns per process",
            )


def open_transport(
    settings: Settings, clock: Clock, bookkeeping: Bookkeeping | None = None
) -> SqsTransport:
    """Make the transport that `execution.queues.sqs` describes; enter it to connect.

    Args:
        bookkeeping: counts and ids shared with other processes; None: SQS's own have to do.
    """
    return SqsTransport(options_from(settings), clock, bookkeeping)
