"""A process from start to exit code: event loop, signals, and faults told to people.

exit code 0   drained and stopped
          1   a part failed, the log says which; or a second signal cut the drain short
          78  the configuration does not fit (EX_CONFIG of sysexits.h); all faults are printed
"""

import asyncio
import gc
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import NoReturn

import uvloop

from turnline.errors import (
    ConfigurationError,
    DrainingError,
    StoreUnavailableError,
    TransportUnavailableError,
)
from turnline.hosting.lifecycle import Lifecycle
from turnline.telemetry import get_logger

_log = get_logger("hosting")

EXIT_FAILED = 1
EXIT_CONFIGURATION = 78

_LINGER_SECONDS = 0.5
# Turns make little cyclic garbage and many short-lived objects: with the interpreter's thresholds
# a tenth of the processor goes into looking for the former among the latter.
_GC_THRESHOLDS = (20_000, 20, 50)

# What is somebody else's fault and known by its message; a traceback would add nothing.
_AWAY = (StoreUnavailableError, TransportUnavailableError)

Serve = Callable[[Lifecycle], Awaitable[None]]
Ending = Callable[[int], None]


def serve_process(serve: Serve) -> NoReturn:
    """Do what `run_process` does, then leave the process with its exit code.

    Leaves half a second after `serve` ended (or a second signal came) even if tasks or threads of
    agents, validators or custom routes do not end.
    """
    sys.exit(run_process(serve, ending=_leave_soon))


def run_process(serve: Serve, *, ending: Ending = lambda _: None) -> int:
    """Run `serve` until it returns; SIGTERM or SIGINT drains, a second one stops at once.

    Args:
        serve: does the process's work and returns after the lifecycle was told to drain.
        ending: called with the exit code as soon as it is known, before tasks and threads that
            are left are waited for.

    Returns:
        The exit code, see above.
    """
    gc.freeze()  # what the imports made stays; no collection need look at it
    gc.set_threshold(*_GC_THRESHOLDS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_supervise(serve, ending))


async def _supervise(serve: Serve, ending: Ending) -> int:
    lifecycle = Lifecycle()
    task = asyncio.current_task()
    interrupted = False

    def on_signal() -> None:
        nonlocal interrupted
        if lifecycle.accepting:
            lifecycle.drain()
        elif task is not None:
            interrupted = True
            ending(EXIT_FAILED)
            task.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    code = 0
    try:
        await serve(lifecycle)
    except asyncio.CancelledError:
        if not interrupted:
            raise
        code = EXIT_FAILED
    except Exception as error:  # noqa: BLE001 - last stop before the exit code
        code = _exit_code(error, told_to_stop=not lifecycle.accepting)
    lifecycle.stop()
    ending(code)
    return code


def _exit_code(error: Exception, *, told_to_stop: bool) -> int:
    leaves = _leaves(error)
    if told_to_stop and all(isinstance(leaf, DrainingError) for leaf in leaves):
        return 0
    faults = [leaf for leaf in leaves if isinstance(leaf, ConfigurationError)]
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    if len(faults) == len(leaves):
        return EXIT_CONFIGURATION
    away = [leaf.message for leaf in leaves if isinstance(leaf, _AWAY)]
    if len(away) == len(leaves):
        _log.critical("process.failed", reason="; ".join(away))
    else:
        _log.critical("process.failed", exc_info=error)
    return EXIT_FAILED


def _leaves(error: BaseException) -> list[BaseException]:
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for inner in error.exceptions for leaf in _leaves(inner)]


def _leave_soon(code: int) -> None:
    timer = threading.Timer(_LINGER_SECONDS, _leave, args=(code,))
    timer.daemon = True
    timer.start()


def _leave(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
