"""The in_memory transport is a transport, on a clock moved by hand."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from turnline.testing import FakeClock
from turnline.testing.conformance.transport import (
    DEFAULT_BOUNDS,
    Bounds,
    TransportConformance,
    TransportHarness,
)
from turnline.transport import Capabilities, Delivery, Queue, Transport
from turnline.transport.in_memory import InMemoryOptions, InMemoryQueue, InMemoryTransport

MIN_CASES = 80


class _HandMovedTime:
    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock

    def now(self) -> float:
        return self._clock.time()

    async def pass_seconds(self, seconds: float) -> None:
        await self._clock.advance(seconds)

    async def calm(self) -> None:
        await self._clock.run_ready()


class InMemoryHarness:
    """Makes in_memory transports; has nothing to declare."""

    def __init__(self) -> None:
        self._clock = FakeClock()
        self.time = _HandMovedTime(self._clock)
        self.patience_seconds = 2.0
        self.capabilities = Capabilities(durable=False, max_bytes=DEFAULT_BOUNDS.max_bytes)

    def open(self, bounds: Bounds) -> AbstractAsyncContextManager[Transport]:
        return self._open(bounds)

    async def inject(self, queue: Queue, raw: bytes, group: str) -> None:
        assert isinstance(queue, InMemoryQueue)
        await queue.inject(raw, group)

    async def crash(self, delivery: Delivery) -> None:
        """Nothing to do: a delivery that nobody settles is all a dead holder leaves behind."""

    @asynccontextmanager
    async def _open(self, bounds: Bounds) -> AsyncIterator[Transport]:
        options = InMemoryOptions(
            ack_wait=bounds.lease_seconds,
            dedup_window=bounds.dedup_seconds,
            max_messages=bounds.max_messages,
            max_messages_per_session=bounds.max_per_session,
            max_bytes=bounds.max_bytes,
            max_dead_letters=bounds.max_dead_letters,
        )
        async with InMemoryTransport(options, self._clock) as transport:
            yield transport


class TestInMemory(TransportConformance):
    """Every case, none excepted."""

    @pytest.fixture
    def harness(self) -> TransportHarness:
        return InMemoryHarness()


def test_the_suite_holds_at_least_eighty_cases() -> None:
    cases = {name for name in dir(TestInMemory) if name.startswith("test_")}
    assert len(cases) >= MIN_CASES


def test_no_two_topics_name_a_case_alike() -> None:
    names = [name for topic in TransportConformance.__bases__ for name in vars(topic)]
    cases = [name for name in names if name.startswith("test_")]
    assert len(cases) == len(set(cases))
