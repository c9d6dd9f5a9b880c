"""A broken reader among others."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from turnline.aws.crashes import guarded
from turnline.hosting import Backoff, ConsumeLoop, ConsumeOptions, LeaseKeeper, Lifecycle
from turnline.protocol import ChatRequest, Envelope
from turnline.protocol.clock import SystemClock
from turnline.telemetry import Metrics
from turnline.transport import Ack, Consumer, Delivery, Settlement, Transport
from turnline.transport.in_memory import InMemoryOptions, InMemoryTransport

Handler = Callable[[Delivery], Awaitable[Settlement]]


class BreakingQueue:
    """The input queue, of which the reader that is made second breaks when it is told to."""

    def __init__(self, transport: InMemoryTransport) -> None:
        self._input = transport.input
        self.breaks = asyncio.Event()
        self._made = 0

    def consumer(self) -> Consumer:
        self._made += 1
        return BreakingConsumer(self.breaks) if self._made == 2 else self._input.consumer()

    def __getattr__(self, name: str) -> object:
        return getattr(self._input, name)


class BreakingConsumer:
    """Breaks instead of receiving."""

    def __init__(self, breaks: asyncio.Event) -> None:
        self._breaks = breaks

    async def __aenter__(self) -> "BreakingConsumer":
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        pass

    async def receive(self) -> Delivery:
        await self._breaks.wait()
        raise ZeroDivisionError


class BreakingTransport:
    """A transport with such an input queue."""

    def __init__(self, transport: InMemoryTransport) -> None:
        self._transport = transport
        self.input = BreakingQueue(transport)

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)


@pytest.fixture
async def transport() -> AsyncIterator[InMemoryTransport]:
    async with InMemoryTransport(InMemoryOptions(), SystemClock()) as transport:
        yield transport


def loop_over(transport: Transport, handler: Handler) -> ConsumeLoop:
    metrics = Metrics()
    return ConsumeLoop(
        queue=transport.input,
        handler=handler,
        options=ConsumeOptions(
            name="input",
            consumers=3,
            max_concurrency=10,
            lease_seconds=10.0,
            max_attempts=3,
            backoff=Backoff(base=0.1),
        ),
        keeper=LeaseKeeper(metrics),
        metrics=metrics,
    )


async def test_siblings_of_a_broken_reader_finish_before_the_process_fails(
    transport: InMemoryTransport,
) -> None:
    breaking = BreakingTransport(transport)
    lifecycle = Lifecycle()
    started, may_end = asyncio.Event(), asyncio.Event()
    ended: list[str] = []

    async def handler(delivery: Delivery) -> Settlement:
        started.set()
        await may_end.wait()
        ended.append(delivery.envelope.request_id)
        return Ack()

    async def serve() -> None:
        async with guarded(breaking, lifecycle) as safe:  # type: ignore[arg-type] # stands in for one
            await loop_over(safe, handler).run(lifecycle.draining, grace=10.0)

    payload = ChatRequest(prompt="x")
    await transport.input.send(Envelope(request_id="r", session_id="s", payload=payload))
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        tasks.create_task(noted(serve, ended))
        await started.wait()
        breaking.input.breaks.set()
        await lifecycle.draining.wait()
        assert ended == []
        may_end.set()

    assert ended == ["r", "ZeroDivisionError"]
    assert (await transport.input.stats()).in_flight == 0


async def noted(serve: Callable[[], Awaitable[None]], ended: list[str]) -> None:
    """Note what ends a process."""
    try:
        await serve()
    except ZeroDivisionError as error:
        ended.append(type(error).__name__)


async def test_a_process_that_nothing_broke_ends_without_an_error(
    transport: InMemoryTransport,
) -> None:
    lifecycle = Lifecycle()

    async def handler(_: Delivery) -> Settlement:
        return Ack()

    async with asyncio.timeout(10), guarded(transport, lifecycle) as safe:
        lifecycle.drain()
        await loop_over(safe, handler).run(lifecycle.draining, grace=1.0)
