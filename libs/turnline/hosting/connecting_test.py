"""A process that starts before its broker waits for it."""

import asyncio
from typing import Self

import pytest

from turnline.errors import ConfigurationError, DrainingError, TransportUnavailableError
from turnline.hosting.backoff import Backoff
from turnline.hosting.connecting import connected
from turnline.protocol.clock import SystemClock
from turnline.telemetry import captured_logs
from turnline.transport.in_memory import InMemoryOptions, InMemoryTransport

AT_ONCE = Backoff(base=0.0)
FOR_EVER = Backoff(base=3600.0, cap=3600.0)


class _Late(InMemoryTransport):
    """A transport whose broker comes up after so many tries."""

    def __init__(self, tries: list[int], error: Exception) -> None:
        super().__init__(InMemoryOptions(), SystemClock())
        self._tries = tries
        self._error = error

    async def __aenter__(self) -> Self:
        self._tries[0] -= 1
        if self._tries[0] >= 0:
            raise self._error
        return await super().__aenter__()


AWAY = TransportUnavailableError("nobody answers")


async def test_a_broker_that_comes_up_late_is_waited_for() -> None:
    tries = [3]
    with captured_logs() as records:
        async with connected(lambda: _Late(tries, AWAY), asyncio.Event(), backoff=AT_ONCE) as found:
            await found.check()

    assert [record["event"] for record in records] == [
        *["dependency.unavailable"] * 3,
        "dependency.recovered",
    ]


async def test_a_broker_that_never_comes_is_given_up() -> None:
    with pytest.raises(TransportUnavailableError, match="nobody answers"):
        async with connected(lambda: _Late([9], AWAY), asyncio.Event(), patience=0):
            pytest.fail("there is nothing to work with")


async def test_a_process_told_to_stop_waits_no_longer() -> None:
    stop = asyncio.Event()

    async def start() -> None:
        async with connected(lambda: _Late([9], AWAY), stop, backoff=FOR_EVER):
            pytest.fail("there is nothing to work with")

    with pytest.raises(ExceptionGroup) as raised:
        async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
            tasks.create_task(start())
            stop.set()
    assert raised.group_contains(DrainingError)


async def test_a_fault_of_the_configuration_is_not_waited_out() -> None:
    tries = [1]
    with pytest.raises(ConfigurationError):
        fault = ConfigurationError(["no such stream"])
        async with connected(lambda: _Late(tries, fault), asyncio.Event()):
            pytest.fail("there is nothing to work with")
    assert tries == [0]
