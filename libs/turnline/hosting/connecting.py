"""Start-up while the broker is not there yet: wait for it, and be stoppable meanwhile.

An orchestrator starts everything at once, and restarts with ever longer pauses what gives up; so a
process gives up late, and only on what waiting does not mend (a ConfigurationError) at once.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from turnline.errors import DrainingError, TransportUnavailableError
from turnline.hosting.backoff import Backoff
from turnline.telemetry import get_logger
from turnline.transport import Transport

_log = get_logger("hosting")

PATIENCE_SECONDS = 60.0
_BACKOFF = Backoff(base=0.1, cap=2.0)


@asynccontextmanager
async def connected(
    make: Callable[[], Transport],
    stop: asyncio.Event,
    *,
    patience: float = PATIENCE_SECONDS,
    backoff: Backoff = _BACKOFF,
) -> AsyncIterator[Transport]:
    """Enter a transport, trying again while its broker is away.

    Args:
        make: makes one that was not entered yet; called for each try.
        stop: set when the process is told to end.
        patience: seconds of trying; a try that has begun by then may take longer.

    Raises:
        TransportUnavailableError: patience is at its end.
        DrainingError: told to stop before the broker was there.
        ConfigurationError: at once; waiting would not help.
    """
    async with AsyncExitStack() as stack:
        yield await _enter(make, stack, stop, patience, backoff)


async def _enter(
    make: Callable[[], Transport],
    stack: AsyncExitStack,
    stop: asyncio.Event,
    patience: float,
    backoff: Backoff,
) -> Transport:
    loop = asyncio.get_running_loop()
    began, failures = loop.time(), 0
    while True:
        try:
            transport = await stack.enter_async_context(make())
        except TransportUnavailableError as error:
            failures += 1
            if loop.time() - began >= patience:
                raise
            _log.warning("dependency.unavailable", dependency="transport", reason=error.message)
        else:
            if failures:
                seconds = round(loop.time() - began, 3)
                _log.info("dependency.recovered", dependency="transport", seconds=seconds)
            return transport
        with suppress(TimeoutError):
            async with asyncio.timeout(backoff.pause(failures)):
                await stop.wait()
        if stop.is_set():
            raise DrainingError
