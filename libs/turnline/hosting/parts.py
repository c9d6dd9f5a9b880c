"""The parts of a process, started and stopped in the one right order.

Start: background work, consume loops, then the servers, then `ready`.  Stop: the runner's loop
finishes or hands back, its last answers flow out, whoever still waits is told to come back, sockets
are told to reconnect, and the servers close last.  A part that fails ends the process.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from turnline.hosting.consume import ConsumeLoop
from turnline.hosting.lifecycle import Lifecycle, State
from turnline.hosting.server import WebServer
from turnline.telemetry import get_logger
from turnline.transport import Queue

_log = get_logger("hosting")

Background = Callable[[], Awaitable[None]]
Farewell = Callable[[], Awaitable[None]]

_FLUSH_SECONDS = 1.0
_SOCKET_SECONDS = 2.0
_OVERRUN_SECONDS = 0.5


class Server(Protocol):
    """Something that listens, as the web server does.

    Attributes:
        started: set once it takes calls.
    """

    started: asyncio.Event

    @property
    def port(self) -> int:
        """The port that is listened on."""
        ...

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set, then let running calls end, and return."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What runs in this process; any part may be missing.

    Attributes:
        web: the server of client and operator routes.
        servers: further ones, started and stopped with it (gRPC).
        runner: the loop over the input queue.
        responder: the loop over the output queue.
        output: the output queue, when both loops are here and its rest must flow out at the end.
        background: work that runs all along and is cancelled last (lease keeper, sockets' tasks).
        farewells: called when no more answers will come, before the servers close.
    """

    web: WebServer | None = None
    servers: Sequence[Server] = field(default=())
    runner: ConsumeLoop | None = None
    responder: ConsumeLoop | None = None
    output: Queue | None = None
    background: Sequence[Background] = field(default=())
    farewells: Sequence[Farewell] = field(default=())


async def run_parts(
    parts: Parts,
    lifecycle: Lifecycle,
    *,
    grace: float,
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Run the parts until the lifecycle drains, then stop them within `grace` seconds.

    What does not stop in that time is cancelled.

    Args:
        on_ready: called when every part is up and work is taken.

    Raises:
        ExceptionGroup: a part failed; the others were cancelled.
    """
    servers: list[Server] = [*([parts.web] if parts.web else ()), *parts.servers]
    reserve = min(_FLUSH_SECONDS + _SOCKET_SECONDS + 1.0, grace / 2)
    stop_answers, stop_servers = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        background = [tasks.create_task(_forever(work)) for work in parts.background]
        running = _Running(
            responder=tasks.create_task(_consume(parts.responder, stop_answers, _FLUSH_SECONDS)),
            runner=tasks.create_task(_consume(parts.runner, lifecycle.draining, grace - reserve)),
            servers=[tasks.create_task(server.run(stop_servers)) for server in servers],
            stop_answers=stop_answers,
            stop_servers=stop_servers,
        )
        for server in servers:
            await server.started.wait()
        lifecycle.ready(port=parts.web.port if parts.web else 0)
        if lifecycle.state is State.READY:
            on_ready()
        await lifecycle.draining.wait()
        try:
            async with asyncio.timeout(grace + _OVERRUN_SECONDS):
                await _stop(parts, running, lifecycle)
        except TimeoutError:
            _log.error("process.overran", grace_seconds=grace)
            background += [running.responder, running.runner, *running.servers]
        for task in background:
            task.cancel()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    """The tasks of the parts, and what tells them to stop."""

    responder: asyncio.Task[None]
    runner: asyncio.Task[None]
    servers: Sequence[asyncio.Task[None]]
    stop_answers: asyncio.Event
    stop_servers: asyncio.Event


async def _stop(parts: Parts, running: _Running, lifecycle: Lifecycle) -> None:
    """Stop the parts in order, once the lifecycle drains."""
    await asyncio.wait([running.runner])
    if parts.output is not None:
        await _flush(parts.output)
    lifecycle.close()
    await _say_farewell(parts.farewells)
    running.stop_answers.set()
    await asyncio.wait([running.responder])
    running.stop_servers.set()
    for server in running.servers:
        await asyncio.wait([server])


async def _consume(loop: ConsumeLoop | None, stop: asyncio.Event, grace: float) -> None:
    if loop is not None:
        await loop.run(stop, grace=grace)


async def _forever(work: Background) -> None:
    await work()


async def _flush(output: Queue) -> None:
    """Wait until the output queue is empty, for a second at most."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_FLUSH_SECONDS):
            while True:
                stats = await output.stats()
                if not stats.waiting and not stats.in_flight:
                    return
                await asyncio.sleep(0.005)


async def _say_farewell(farewells: Sequence[Farewell]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(_SOCKET_SECONDS), asyncio.TaskGroup() as tasks:
            for farewell in farewells:
                tasks.create_task(_forever(farewell))
