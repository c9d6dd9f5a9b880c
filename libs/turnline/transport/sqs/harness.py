"""For tests of this room: transports on a real ElasticMQ, each on queues of its own."""

import asyncio
import base64
import itertools
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace

from turnline.protocol import SessionKey, digest
from turnline.protocol.clock import SystemClock
from turnline.testing.conformance.transport import DEFAULT_BOUNDS, Bounds
from turnline.transport import Bookkeeping, Capabilities, Delivery, Queue, Transport
from turnline.transport.sqs import QueueOptions, SqsOptions, SqsQueue, SqsTransport, provision
from turnline.transport.sqs.api import SqsApi
from turnline.transport.sqs.differences import differences
from turnline.transport.sqs.wire import CONTENT_TYPE, PROTOBUF, Outgoing, group_of

_NUMBERS = itertools.count()
CALM_SECONDS = 0.3
OpenBooks = Callable[[], AbstractAsyncContextManager[Bookkeeping | None]]
ACCOUNT = "000000000000"


def options_for(url: str) -> SqsOptions:
    """Give options for queues that nobody uses."""
    name = f"t{next(_NUMBERS)}-{secrets.token_hex(3)}"
    return SqsOptions(
        input=QueueOptions(name="input", url=f"{url}/{ACCOUNT}/{name}-in.fifo"),
        output=QueueOptions(name="output", url=f"{url}/{ACCOUNT}/{name}-out.fifo"),
        region="eu-west-1",
        endpoint_url=url,
        request_timeout=5.0,
    )


@asynccontextmanager
async def api_of(options: SqsOptions) -> AsyncIterator[SqsApi]:
    """Give the calls on SQS over a client of its own."""
    api = SqsApi(options.aws, SystemClock(), seconds=options.request_timeout)
    await api.open()
    try:
        yield api
    finally:
        await api.close()


@asynccontextmanager
async def fresh_queues(url: str) -> AsyncIterator[SqsOptions]:
    """Give options for fresh queues, which are there for the length of the block."""
    options = options_for(url)
    async with api_of(options) as api:
        await provision.apply(api, options)
        try:
            yield options
        finally:
            for queue in options.queues:
                await api.delete_queue(queue.url)
                await api.delete_queue(queue.url.removesuffix(".fifo") + "-dlq.fifo")


class RealTime:
    """The time everybody lives in."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    async def pass_seconds(self, seconds: float) -> None:
        """Sleep."""
        await asyncio.sleep(seconds)

    async def calm(self) -> None:
        """Sleep for long enough that what comes at once has come."""
        await asyncio.sleep(CALM_SECONDS)


class SqsHarness:
    """Makes transports on one server.

    Args:
        batch_size: messages one receive call takes.
        open_books: opens the books that processes share; None: there are none.
    """

    def __init__(
        self, url: str, *, batch_size: int = 1, open_books: OpenBooks | None = None
    ) -> None:
        self._url = url
        self._batch_size = batch_size
        self._open_books = open_books or _no_books
        self.time = RealTime()
        self.patience_seconds = 10.0
        self.capabilities = Capabilities(
            max_bytes=DEFAULT_BOUNDS.max_bytes,
            differences=differences(with_books=open_books is not None),
        )

    def open(self, bounds: Bounds) -> AbstractAsyncContextManager[Transport]:
        """Give a transport on fresh queues, which go when it is left."""
        return self._open(bounds)

    async def inject(self, queue: Queue, raw: bytes, group: str) -> None:
        """Send bytes as a producer does that has no text: as base64, and nothing else said."""
        assert isinstance(queue, SqsQueue)  # noqa: S101 - used by tests only
        message = Outgoing(
            body=base64.b64encode(raw).decode(),
            attributes={CONTENT_TYPE: PROTOBUF},
            group=group_of(SessionKey("", group)),
            dedup_id=digest(secrets.token_hex(8)),
        )
        async with api_of(options_for(self._url)) as api:
            await api.send(queue.options.url, message)

    async def crash(self, delivery: Delivery) -> None:
        """Nothing to do: a delivery that nobody settles is all a dead holder leaves behind."""

    @asynccontextmanager
    async def _open(self, bounds: Bounds) -> AsyncIterator[Transport]:
        async with fresh_queues(self._url) as fresh:
            options = replace(
                fresh,
                input=replace(fresh.input, max_per_session=bounds.max_per_session),
                visibility_timeout=round(bounds.lease_seconds),
                batch_size=self._batch_size,
                max_messages=bounds.max_messages,
                max_bytes=bounds.max_bytes,
                max_dead_letters=bounds.max_dead_letters,
            )
            async with (
                self._open_books() as books,
                SqsTransport(options, SystemClock(), books) as transport,
            ):
                yield transport


def _no_books() -> AbstractAsyncContextManager[Bookkeeping | None]:
    return nullcontext()
