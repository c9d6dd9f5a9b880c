"""A container's process on this machine: a file of the application, drained when it ends."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

START_SECONDS = 90.0
# Longer than execution.drain_grace, or running turns are cut off.
STOP_SECONDS = 30.0
_LOOK_SECONDS = 0.05
# Characters of a log.
_SHOWN = 4000

# A child finds modules where this process does, and first beside its own file.
_START = "import sys, runpy; sys.path[:] = {path!r}; runpy.run_path({file!r}, run_name='__main__')"


class ContainerEndedError(Exception):
    """It ended by itself."""


@asynccontextmanager
async def container(file: Path, *, environment: Mapping[str, str], log: Path) -> AsyncIterator[str]:
    """Run a file for the length of the block, and give the URL that its load balancer knows.

    Args:
        environment: all its variables; it has none of this process's.
        log: where its log goes.

    Raises:
        ContainerEndedError: it ended by itself, now or while the block ran (then in a group).
    """
    path = [str(file.parent), *sys.path]
    with _opened(log) as written:
        # In a session of its own: Ctrl-C in the terminal is for us, who then drain in good order.
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", _START.format(path=path, file=str(file))),
            env={
                **environment,
                "AK_API__HOST": "127.0.0.1",
                "AK_API__PORT": "0",
                "AK_LOGGING__FORMAT": "json",
            },
            stdout=written,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        async with asyncio.timeout(START_SECONDS):
            while (port := port_in(log)) is None:
                if process.returncode is not None:
                    raise _ended(process, file, log)
                await asyncio.sleep(_LOOK_SECONDS)
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(_watch(process, file, log))
            yield f"http://127.0.0.1:{port}"
            watching.cancel()
    finally:
        await _drain(process)


def port_in(log: Path) -> int | None:
    """Give the port that a container says it listens on; None: it is not ready."""
    for line in log.read_text(errors="replace").splitlines():
        if line.startswith("{") and line.endswith("}"):
            event = json.loads(line)
            if event.get("event") == "process.ready":
                return int(event["port"])
    return None


async def _watch(process: asyncio.subprocess.Process, file: Path, log: Path) -> None:
    await process.wait()
    raise _ended(process, file, log)


def _opened(log: Path) -> BinaryIO:
    log.parent.mkdir(exist_ok=True)
    return log.open("wb")


def _ended(process: asyncio.subprocess.Process, file: Path, log: Path) -> ContainerEndedError:
    told = log.read_text(errors="replace")[-_SHOWN:]
    return ContainerEndedError(f"{file.name} ended with {process.returncode}:\n{told}")


async def _drain(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
