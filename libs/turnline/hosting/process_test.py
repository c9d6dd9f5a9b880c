"""Signals drain, faults become exit codes."""

import asyncio
import os
import signal

import pytest

from turnline.errors import ConfigurationError, TransportUnavailableError
from turnline.hosting import EXIT_CONFIGURATION, EXIT_FAILED, Lifecycle, State, run_process
from turnline.telemetry import captured_logs


async def until_drained(lifecycle: Lifecycle) -> None:
    lifecycle.ready()
    await lifecycle.draining.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_the_code_is_0(number: signal.Signals) -> None:
    seen: list[Lifecycle] = []

    async def serve(lifecycle: Lifecycle) -> None:
        seen.append(lifecycle)
        os.kill(os.getpid(), number)
        await until_drained(lifecycle)

    assert run_process(serve) == 0
    assert seen[0].state is State.STOPPED


def test_a_second_signal_cuts_the_drain_short() -> None:
    endings: list[int] = []
    cleaned: list[str] = []

    async def serve(lifecycle: Lifecycle) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await until_drained(lifecycle)
        os.kill(os.getpid(), signal.SIGTERM)
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append("up")

    assert run_process(serve, ending=endings.append) == EXIT_FAILED
    assert cleaned == ["up"]
    assert endings[0] == EXIT_FAILED


def test_all_faults_of_the_configuration_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    async def serve(_: Lifecycle) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(refuse("api.port: is taken", "api.host: is no host"))

    assert run_process(serve) == EXIT_CONFIGURATION
    printed = capsys.readouterr().err
    assert "api.port: is taken" in printed
    assert "api.host: is no host" in printed
    assert "Traceback" not in printed


async def refuse(*faults: str) -> None:
    raise ConfigurationError(faults)


async def fail() -> None:
    raise RuntimeError("a part broke")


@pytest.mark.parametrize("with_fault", [True, False])
def test_any_other_failure_is_code_1(*, with_fault: bool) -> None:
    async def serve(_: Lifecycle) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail())
            if with_fault:
                tasks.create_task(refuse("api.port: is taken"))

    assert run_process(serve) == EXIT_FAILED


def test_the_end_is_told_before_what_is_left_is_waited_for() -> None:
    told: list[str] = []

    async def left() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            told.append("left task ended")

    async def serve(lifecycle: Lifecycle) -> None:
        tasks.append(asyncio.get_running_loop().create_task(left()))
        await asyncio.sleep(0)
        lifecycle.drain()

    tasks: list[asyncio.Task[None]] = []
    run_process(serve, ending=lambda code: told.append(f"code {code}"))

    assert told == ["code 0", "left task ended"]


async def be_without_a_broker(_: Lifecycle) -> None:
    raise TransportUnavailableError("nobody answers")


def test_a_broker_that_is_away_is_said_in_a_line_without_a_traceback() -> None:
    with captured_logs() as records:
        code = run_process(be_without_a_broker)

    failed = next(record for record in records if record["event"] == "process.failed")
    assert (code, failed["reason"]) == (EXIT_FAILED, "nobody answers")
    assert "exception" not in failed
