"""A process from start to exit code: event loop, signals, and faults told to people.

exit code 0   drained and stopped
          1   a part failed; the log says which
          78  the configuration does not fit (EX_CONFIG of sysexits.h); all faults are printed
"""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable

import uvloop

from turnline.errors import ConfigurationError
from turnline.hosting.lifecycle import Lifecycle
from turnline.telemetry import get_logger

_log = get_logger("hosting")

EXIT_FAILED = 1
EXIT_CONFIGURATION = 78

Serve = Callable[[Lifecycle], Awaitable[None]]


def run_process(serve: Serve) -> int:
    """Run `serve` until it returns; SIGTERM or SIGINT drains, a second one stops at once.

    Args:
        serve: does the process's work and returns after the lifecycle was told to drain.

    Returns:
        The exit code, see above.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_supervise(serve))


async def _supervise(serve: Serve) -> int:
    lifecycle = Lifecycle()
    task = asyncio.current_task()

    def on_signal() -> None:
        if lifecycle.accepting:
            lifecycle.drain()
        elif task is not None:
            task.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    try:
        await serve(lifecycle)
    except Exception as error:  # noqa: BLE001 - last stop before the exit code
        return _exit_code(error)
    lifecycle.stop()
    return 0


def _exit_code(error: Exception) -> int:
    leaves = _leaves(error)
    faults = [leaf for leaf in leaves if isinstance(leaf, ConfigurationError)]
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    if len(faults) == len(leaves):
        return EXIT_CONFIGURATION
    _log.critical("process.failed", exc_info=error)
    return EXIT_FAILED


def _leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
