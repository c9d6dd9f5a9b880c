"""What can be seen of an installation from outside: its logs, its agents' notes, its queues."""

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx

from chaos.processes.directives import CRASH_CODE
from chaos.processes.topology import Kind, Pod, Topology
from e2e.process import ADMIN_TOKEN, Server

SEEN_SECONDS = 30.0
LOOK_SECONDS = 0.02


def urls(installed: Topology, kind: Kind) -> list[str]:
    """Give the addresses of the pods of a kind that are up."""
    return [pod.server.url for pod in installed.of(kind) if pod.alive and pod.server.port]


def up(installed: Topology, kind: Kind) -> Server:
    """Give a process of a kind that is up, if one is."""
    pods = installed.of(kind)
    return next((pod for pod in pods if pod.alive and pod.server.port), pods[0]).server


def attempts_at(installed: Topology, request: str) -> list[int]:
    """Give the attempts at a turn that began, in order."""
    entries = installed.agent_entries
    return [entry.attempt for entry in entries if (entry.request, entry.what) == (request, "start")]


async def begun(installed: Topology, request: str, count: int = 1) -> None:
    """Wait until agents have been started so often for a turn."""
    await eventually(lambda: len(attempts_at(installed, request)) >= count)


async def eventually(true: Callable[[], bool], *, within: float = SEEN_SECONDS) -> None:
    """Wait for something that only looking tells."""
    async with asyncio.timeout(within):
        while not true():  # noqa: ASYNC110 - another process makes it true
            await asyncio.sleep(LOOK_SECONDS)


async def finally_(true: Callable[[], Awaitable[bool]], *, within: float = SEEN_SECONDS) -> None:
    """Wait for something that only asking tells."""
    async with asyncio.timeout(within):
        while not await true():  # noqa: ASYNC110 - another process makes it true
            await asyncio.sleep(LOOK_SECONDS)


def runner_of(installed: Topology, request: str) -> Pod:
    """Give the runner that began a turn last."""
    pid = [entry.pid for entry in installed.agent_entries if entry.request == request][-1]
    return next(pod for pod in installed.pods if pod.server.process.pid == pid)


def logged(installed: Topology, kind: Kind, event: str) -> list[dict[str, Any]]:
    """Give the log lines of an event, of every process a kind has had."""
    servers = [server for pod in installed.of(kind) for server in pod.servers]
    return [
        {**line, "pid": server.process.pid} for server in servers for line in server.events(event)
    ]


def commits_of(installed: Topology, request: str) -> list[dict[str, Any]]:
    """Give the log lines that say a runner committed a turn."""
    lines = logged(installed, Kind.RUNNER, "turn.committed")
    return [line for line in lines if line["request_id"] == request]


async def dead_letters(server: Server, queue: str = "input") -> list[dict[str, Any]]:
    """Ask a process for the dead letters of a queue."""
    headers = {"authorization": f"Bearer {ADMIN_TOKEN}"}
    async with server.client() as client:
        answer = await client.get(f"/admin/dlq/{queue}?limit=1000", headers=headers)
    letters: list[dict[str, Any]] = answer.json()["letters"]
    return letters


@asynccontextmanager
async def replaced_as_they_end(installed: Topology, *kinds: Kind) -> AsyncIterator[None]:
    """Start a process in the place of each that ends, as an orchestrator does."""

    async def watch(pod: Pod) -> None:
        while True:
            await pod.server.process.wait()
            with suppress(AssertionError):  # it ended again before it was ready
                await installed.replace(pod)

    async with asyncio.TaskGroup() as tasks:
        watches = [tasks.create_task(watch(pod)) for pod in installed.pods if pod.kind in kinds]
        yield
        for task in watches:
            task.cancel()


async def left_on_queues(installed: Topology, *, within: float = SEEN_SECONDS) -> str:
    """Say what stays on the queues though nobody sends any more; empty if nothing does."""
    depths: dict[str, dict[str, float]] = {}

    async def empty() -> bool:
        nonlocal depths
        try:
            depths = await up(installed, Kind.RUNNER).queues()
        except httpx.HTTPError:
            return False
        return not any(depth["waiting"] or depth["in_flight"] for depth in depths.values())

    try:
        await finally_(empty, within=within)
    except TimeoutError:
        return f"the queues keep {depths}"
    return ""


def ended_by_themselves(installed: Topology) -> list[str]:
    """Say which processes ended though nobody told them to, one sentence each."""
    # A second SIGTERM ends the drain: with 1, or with the signal's own number after it.
    told = (None, 0, 1, -signal.SIGKILL, -signal.SIGTERM, CRASH_CODE)
    return [
        f"{server.directory.name} ended by itself with {server.process.returncode}"
        for pod in installed.pods
        for server in pod.servers
        if server.events("process.ready")
        and (server.process.returncode not in told or server.events("process.failed"))
    ]


async def repaired(installed: Topology) -> None:
    """Bring every pod back that a test has stopped."""
    for pod in installed.pods:
        if pod.frozen:
            pod.thaw()
        if not pod.alive:
            await installed.replace(pod)
