"""What the tests of both examples share: an example that runs, asked in every client mode."""

import asyncio
import json
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import httpx
import psutil

from aws_local.client import MODES, Access, ask, result_in
from aws_local.command import MISSING, PROMPT
from turnline.testing.missing import missing

START_SECONDS = 150.0
END_SECONDS = 60.0
# Processes that hear of the end at the same time as the command does, and are a little later.
GONE_SECONDS = 10.0
_LOOK_SECONDS = 0.02


async def check_that_it_answers_and_ends(folder: Path, scratch: Path, *, processes: int) -> None:
    """Run it as a user does: ask in every mode, send what it prints, end it with Ctrl-C.

    Args:
        scratch: an empty folder, where all its files go.
        processes: that it starts at least; Lambda starts further sandboxes as it needs them.
    """
    async with started(folder, scratch) as process:
        said = await said_by(process)
        access = Access(
            http_url=said["http-api"], websocket_url=said["websocket-api"], token=said["export"]
        )
        pieces = {mode: await pieces_of(access, mode) for mode in MODES}
        printed = [await sent(said[mode], access) for mode in ("rest_sync", "rest_async")]
        status = await status_over(access)
        talked = await talked_over(access)
        children = psutil.Process(process.pid).children(recursive=True)
        code = await ended(process, signal.SIGINT)

    assert [mode for mode, each in pieces.items() if "runner" not in "".join(each)] == []
    assert [mode for mode, each in pieces.items() if len(each) > 1] == ["sse", "stream"]
    assert "runner" in result_in(printed[0])
    assert printed[1].json()["status"] == "ACCEPTED"
    assert (status["up"], status["who"]) == (True, "you")
    assert "runner" in talked
    assert code == 0
    assert len(children) >= processes
    assert left_of(children, scratch) == []


async def check_that_once_is_enough(folder: Path, scratch: Path) -> None:
    """Run it with `--once`: an answer in each mode, and it has ended."""
    async with started(folder, scratch, "--once") as process:
        async with asyncio.timeout(START_SECONDS):
            out, _ = await process.communicate()

    lines = out.decode().splitlines()
    assert process.returncode == 0
    assert [line.partition(" ")[0] for line in lines[1:]] == list(MODES)
    assert all("runner" in line for line in lines[1:])
    assert left_of([], scratch) == []


async def check_that_it_may_be_ended_at_once(folder: Path, scratch: Path) -> None:
    """End it with its first line, when none of its servers is up."""
    async with started(folder, scratch) as process:
        assert process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            await process.stdout.readline()
        code = await ended(process, signal.SIGTERM)

    assert code == 0
    assert left_of([], scratch) == []


async def check_that_it_may_be_ended_while_it_starts(folder: Path, scratch: Path) -> None:
    """End it as soon as the Java process is there."""
    async with started(folder, scratch) as process:
        children: list[psutil.Process] = []
        async with asyncio.timeout(START_SECONDS):
            while not any("java" in child.name() for child in children):
                await skip_if_missing(process)
                await asyncio.sleep(_LOOK_SECONDS)
                children = psutil.Process(process.pid).children(recursive=True)
        code = await ended(process, signal.SIGTERM)

    assert code == 0
    assert left_of(children, scratch) == []


async def check_that_a_dead_container_ends_it(folder: Path, scratch: Path) -> None:
    """Kill one of its containers: it says so, ends the others, and fails."""
    async with started(folder, scratch) as process:
        await said_by(process)
        children = psutil.Process(process.pid).children(recursive=True)
        runner = next(child for child in children if "agent_runner" in " ".join(child.cmdline()))
        runner.kill()
        async with asyncio.timeout(END_SECONDS):
            code = await process.wait()
        told = await stderr_of(process)

    assert code == 1
    assert "agent_runner.py ended with -9" in told
    assert left_of(children, scratch) == []


@asynccontextmanager
async def started(
    folder: Path, scratch: Path, *arguments: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start an example's command, which is ended behind the block if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(folder / "up.py"), *arguments),
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "TMPDIR": str(scratch),
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield process
        await skip_if_missing(process)
    finally:
        if process.returncode is None:
            await ended(process, signal.SIGTERM)


async def said_by(process: asyncio.subprocess.Process) -> Mapping[str, str]:
    """Wait until it is ready; give what it printed, by the first word of each line."""
    assert process.stdout is not None
    said: dict[str, str] = {}
    async with asyncio.timeout(START_SECONDS):
        while "ready" not in said:
            line = (await process.stdout.readline()).decode()
            if not line:
                await process.wait()
                await skip_if_missing(process)
                raise RuntimeError(f"it ended before it was ready: {await stderr_of(process)}")
            name, _, rest = line.strip().partition(" ")
            said[name] = rest.strip()
    return {**said, "export": said["export"].removeprefix("TOKEN=")}


async def skip_if_missing(process: asyncio.subprocess.Process) -> None:
    """Skip the test if the command ended because this machine lacks something."""
    if process.returncode == MISSING:
        missing(await stderr_of(process))


async def stderr_of(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    return (await process.stderr.read()).decode()


async def pieces_of(access: Access, mode: str) -> list[str]:
    pieces: list[str] = []
    await ask(access, mode, PROMPT, pieces.append)
    return pieces


async def status_over(access: Access) -> dict[str, object]:
    """Ask on the application's own route."""
    async with access.socket() as socket:
        await socket.send('{"route": "status"}')
        answer: dict[str, object] = json.loads(await socket.recv())
        return answer


async def talked_over(access: Access) -> str:
    """Ask with the product's own terminal client."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "turnline.cli.main", "chat", PROMPT),
        *("--url", access.websocket_url, "--token", access.token, "--token-in", "query"),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(END_SECONDS):
        out, err = await process.communicate()
    return out.decode() or err.decode()


async def sent(line: str, access: Access) -> httpx.Response:
    """Send what a line with curl would."""
    words = shlex.split(line.replace("$TOKEN", access.token))
    [url] = [word for word in words if word.startswith("http")]
    options = list(pairwise(words))
    headers = [value.split(": ", 1) for option, value in options if option == "-H"]
    [body] = [value for option, value in options if option == "-d"]
    async with httpx.AsyncClient(timeout=60.0) as client:
        return await client.post(url, headers=dict(headers), content=body)


async def ended(process: asyncio.subprocess.Process, how: signal.Signals) -> int:
    """Do to it what a terminal does; give the exit code."""
    os.killpg(process.pid, how)
    async with asyncio.timeout(END_SECONDS):
        return await process.wait()


def left_of(processes: list[psutil.Process], scratch: Path) -> list[object]:
    """Give what does not end or is not removed: of processes, of others that use the folder
    `scratch` (they may have come later), and of its files."""
    _, alive = psutil.wait_procs([*processes, *users_of(scratch)], timeout=GONE_SECONDS)
    return [*alive, *scratch.iterdir()]


def users_of(folder: Path) -> list[psutil.Process]:
    def uses(process: psutil.Process) -> bool:
        try:
            return str(folder) in " ".join([*process.cmdline(), process.cwd()])
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False

    return [process for process in psutil.process_iter() if uses(process)]
