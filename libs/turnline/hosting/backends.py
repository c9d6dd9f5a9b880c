"""What a process is connected to: its stores, its transport, and where its signals go."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from turnline.config import Settings, Topology
from turnline.hosting.connecting import connected
from turnline.protocol.clock import Clock
from turnline.store.registry import Stores, open_bookkeeping, open_stores
from turnline.telemetry import Metrics, Tracing, configure_tracing
from turnline.transport import Bookkeeping, Transport
from turnline.transport.registry import needs_bookkeeping, open_transport

_FLUSH_SPANS_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Backends:
    """Open connections of one process."""

    clock: Clock
    metrics: Metrics
    tracing: Tracing
    transport: Transport
    stores: Stores


@asynccontextmanager
async def open_backends(
    settings: Settings,
    clock: Clock,
    *,
    part: Topology = Topology.SINGLE_PROCESS,
    stop: asyncio.Event | None = None,
) -> AsyncIterator[Backends]:
    """Connect to everything the settings name, waiting a while for a broker that is away.

    Args:
        part: which part of the pipeline this process is, for the name of its traces.
        stop: ends the waiting when it is set.

    Raises:
        TransportUnavailableError: the broker did not come.
        DrainingError: told to stop before it came.
        ConfigurationError: an adapter is missing, or an object on the broker is missing or differs.
    """
    asked = settings.telemetry
    tracing = configure_tracing(asked.otlp_endpoint, name_in_traces(asked.service_name, part))
    try:
        async with (
            open_stores(settings, clock) as stores,
            _open_books(settings, clock) as books,
            connected(
                lambda: open_transport(settings, clock, books), stop or asyncio.Event()
            ) as transport,
        ):
            yield Backends(
                clock=clock,
                metrics=Metrics(),
                tracing=tracing,
                transport=transport,
                stores=stores,
            )
    finally:
        await tracing.shutdown(seconds=_FLUSH_SPANS_SECONDS)


def name_in_traces(service_name: str, part: Topology) -> str:
    """Give the `service.name` of a process: the configured one, and which part of it this is."""
    return service_name if part is Topology.SINGLE_PROCESS else f"{service_name}-{part.value}"


@asynccontextmanager
async def _open_books(settings: Settings, clock: Clock) -> AsyncIterator[Bookkeeping | None]:
    """Give the transport books on the server of the sessions, where it needs any."""
    if not needs_bookkeeping(settings):
        yield None
        return
    async with open_bookkeeping(settings, clock) as books:
        yield books
