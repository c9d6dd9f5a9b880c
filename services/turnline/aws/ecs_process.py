"""Processes on ECS: the services of a broker's topology, with API Gateway before their sockets.

Read top to bottom: what is opened first is closed last.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import NoReturn, TypeVar

from starlette.routing import BaseRoute

from turnline.agent import AgentRegistry
from turnline.auth import AuthValidator
from turnline.aws.checks import WEBSOCKET_MODES, part_of, read_settings_for
from turnline.aws.crashes import guarded
from turnline.aws.ecs_sockets import socket_routes
from turnline.aws.gateway_push import open_gateway_push, open_gateway_routes
from turnline.aws.own_paths import OwnPaths
from turnline.aws.socket_wiring import socket_desk
from turnline.config import Settings, Topology
from turnline.frontdoor import web_app
from turnline.hosting import (
    ConsumeLoop,
    LeaseKeeper,
    Lifecycle,
    Parts,
    Standalone,
    WebServer,
    open_backends,
    operator_routes,
    run_parts,
    serve_process,
    web_options,
)
from turnline.protocol.clock import SystemClock
from turnline.request_handler import WaitingRoom
from turnline.request_handler.process import client_routes
from turnline.responder.wiring import responder_loop
from turnline.telemetry import watch_loop_lag

T = TypeVar("T")


def serve_part(
    part: Topology,
    prepare: Callable[[Settings], T],
    serve: Callable[[Standalone, T], Awaitable[None]],
    *,
    more: Callable[[Settings], Iterator[str]] = lambda _: iter(()),
    direct: AgentRegistry | None = None,
) -> NoReturn:
    """Run a part of the pipeline until told to stop or a reader breaks, then leave the process.

    Settings that do not fit are printed, all of them, and end it with exit code 78.

    Args:
        more: faults of the entry point's own.
        direct: what it runs where there are no queues; None: it needs queues.
    """

    async def run(lifecycle: Lifecycle) -> None:
        settings, prepared = read_settings_for(part, prepare, more=more, direct=direct)
        named = part_of(settings, part)
        async with (
            open_backends(settings, SystemClock(), part=named, stop=lifecycle.draining) as backends,
            guarded(backends.transport, lifecycle) as transport,
        ):
            process = Standalone(
                settings=settings,
                lifecycle=lifecycle,
                backends=replace(backends, transport=transport),
            )
            await serve(process, prepared)

    serve_process(run)


async def serve_io(process: Standalone, validator: AuthValidator | None) -> None:
    """Serve callers and take answers until the lifecycle drains."""
    async with _answers(process) as (responder, keeper), _front(process, validator) as front:
        await _serve(process, front, responder, keeper)


async def serve_front(process: Standalone, validator: AuthValidator | None) -> None:
    """Serve callers alone; answers are taken by another process."""
    async with _front(process, validator) as front:
        await _serve(process, front, None, None)


async def serve_output(process: Standalone, _: None) -> None:
    """Take answers alone; callers are served by another process."""
    async with _answers(process) as (responder, keeper):
        await _serve(process, _Front([], None), responder, keeper)


class _Front:
    """Routes of callers, and where those wait."""

    def __init__(self, routes: list[BaseRoute], waiting: WaitingRoom | None) -> None:
        self.routes = routes
        self.waiting = waiting


@asynccontextmanager
async def _front(process: Standalone, validator: AuthValidator | None) -> AsyncIterator[_Front]:
    settings = process.settings
    if settings.execution.mode not in WEBSOCKET_MODES:
        waiting = WaitingRoom()
        own = OwnPaths().web_routes(max_bytes=settings.api.max_body_bytes)
        yield _Front([*own, *client_routes(process, waiting, validator)], waiting)
        return
    async with open_gateway_routes(settings) as ways:
        desk = socket_desk(
            settings,
            process.backends,
            ways,
            validator=validator,
            accepting=lambda: process.lifecycle.accepting,
        )
        endpoint = settings.websocket_api.endpoint_url or ""
        yield _Front(socket_routes(desk, endpoint=endpoint), None)


@asynccontextmanager
async def _answers(process: Standalone) -> AsyncIterator[tuple[ConsumeLoop, LeaseKeeper]]:
    settings, backends = process.settings, process.backends
    async with open_gateway_push(settings, backends) as push:
        pushes = settings.execution.mode in WEBSOCKET_MODES
        keeper = LeaseKeeper(backends.metrics)
        yield responder_loop(settings, backends, keeper, push=push if pushes else None), keeper


async def _serve(
    process: Standalone,
    front: _Front,
    responder: ConsumeLoop | None,
    keeper: LeaseKeeper | None,
) -> None:
    settings, backends = process.settings, process.backends
    alive = {} if responder is None else {"responder": lambda: responder.reading}
    routes = [
        *front.routes,
        *operator_routes(settings, backends, process.lifecycle, alive=alive),
    ]
    web = WebServer(web_app(routes), web_options(settings))
    process.started(web.port)
    background: list[Callable[[], Awaitable[None]]] = [
        lambda: watch_loop_lag(backends.metrics, backends.clock)
    ]
    if keeper is not None:
        background.append(keeper.run)
    parts = Parts(
        web=web,
        responder=responder,
        background=background,
        farewells=[] if front.waiting is None else [front.waiting.close],
    )
    await run_parts(parts, process.lifecycle, grace=settings.execution.drain_grace)
