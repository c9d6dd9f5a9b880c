"""One service as a process of its own: settings read and checked, backends open, then its `serve`.

Every service's `main` is a call of `serve_service`, or of `serve_prepared` where something is made
of the settings first.  Its `serve` takes a `Standalone`, so that a test can give two services the
same backends.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from starlette.routing import BaseRoute

from turnline.config import Settings, Topology, topology_faults
from turnline.errors import ConfigurationError
from turnline.hosting.backends import Backends, open_backends
from turnline.hosting.lifecycle import Lifecycle
from turnline.hosting.ops import Alive, Ops, Render
from turnline.hosting.process import serve_process
from turnline.hosting.server import WebOptions
from turnline.hosting.settings import check_topology, load
from turnline.protocol.clock import SystemClock
from turnline.telemetry import QueueSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Standalone:
    """What a service works with in a process of its own.

    Attributes:
        pod_ip: address at which other pods reach this one (`AK_POD_IP`); empty when not set.
        started: called with the port that is listened on, once it is bound.
    """

    settings: Settings
    lifecycle: Lifecycle
    backends: Backends
    pod_ip: str = ""
    started: Callable[[int], None] = lambda _port: None


ServeStandalone = Callable[[Standalone], Awaitable[None]]
Prepared = TypeVar("Prepared")


def serve_service(topology: Topology, serve: ServeStandalone) -> NoReturn:
    """Run one service until told to stop, then leave the process.

    Settings that do not fit are printed, all of them, and end it with exit code 78.
    """
    serve_prepared(topology, lambda _: serve)


def serve_prepared(topology: Topology, prepare: Callable[[Settings], ServeStandalone]) -> NoReturn:
    """As `serve_service`, with a `serve` that is made of the settings.

    Args:
        prepare: called before anything is opened; may raise ConfigurationError, whose faults are
            printed with the others.
    """

    async def run(lifecycle: Lifecycle) -> None:
        loaded = load()
        serve = check_and_prepare(loaded.settings, topology, prepare)
        async with open_backends(
            loaded.settings, SystemClock(), part=topology, stop=lifecycle.draining
        ) as backends:
            await serve(
                Standalone(
                    settings=loaded.settings,
                    lifecycle=lifecycle,
                    backends=backends,
                    pod_ip=loaded.pod_ip,
                )
            )

    serve_process(run)


def check_and_prepare(
    settings: Settings, topology: Topology, prepare: Callable[[Settings], Prepared]
) -> Prepared:
    """Check the settings as `check_topology` does, and give what `prepare` makes of them.

    Raises:
        ConfigurationError: lists every fault of both.
    """
    try:
        prepared = prepare(settings)
    except ConfigurationError as error:
        faults = topology_faults(settings, topology=topology)
        raise ConfigurationError([*faults, *error.faults]) from error
    check_topology(settings, topology)
    return prepared


def operator_routes(
    settings: Settings,
    backends: Backends,
    lifecycle: Lifecycle,
    *,
    alive: Mapping[str, Alive] | None = None,
) -> list[BaseRoute]:
    """Make /health, /ready and, unless switched off, /metrics of a process on a transport.

    Args:
        alive: part of this process -> whether it still does its work.
    """
    ops = Ops(
        lifecycle=lifecycle,
        alive=alive or {},
        checks={"transport": backends.transport.check, **backends.stores.checks},
        render_metrics=_scrape(backends) if settings.telemetry.metrics else None,
    )
    return [*ops.routes()]


def web_options(settings: Settings, *, port: int | None = None) -> WebOptions:
    """Give where and how to serve; `port` takes the place of `api.port`."""
    sockets = settings.websocket_api
    return WebOptions(
        host=settings.api.host,
        port=settings.api.port if port is None else port,
        max_frame_bytes=sockets.max_frame_bytes,
        ping_interval=sockets.ping_interval,
        ping_timeout=sockets.ping_timeout,
    )


def _scrape(backends: Backends) -> Render:
    sources = [
        QueueSource(queue="input", stats=backends.transport.input.stats),
        QueueSource(queue="output", stats=backends.transport.output.stats),
    ]
    return lambda: backends.metrics.scrape(sources)
