"""What a process is connected to: its transport and its stores, opened in this order."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from turnline.config import Settings
from turnline.protocol.clock import Clock
from turnline.store.registry import Stores, open_stores
from turnline.transport import Transport
from turnline.transport.registry import open_transport


@dataclass(frozen=True, slots=True, kw_only=True)
class Backends:
    """Open connections of one process."""

    clock: Clock
    transport: Transport
    stores: Stores


@asynccontextmanager
async def open_backends(settings: Settings, clock: Clock) -> AsyncIterator[Backends]:
    """Connect to everything the settings name.

    Raises:
        ConfigurationError: an adapter is missing, or an object on the broker is missing or differs.
    """
    async with (
        open_stores(settings, clock) as stores,
        open_transport(settings, clock) as transport,
    ):
        yield Backends(clock=clock, transport=transport, stores=stores)
