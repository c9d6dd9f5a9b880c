"""Transports by name, loaded only when chosen.

An adapter is a module with `open_transport(settings, clock) -> Transport`.  A service's package
holds only the adapters listed in its target, so a missing module is an answer, not a bug.
"""

import importlib
from types import MappingProxyType

from turnline.config import Settings
from turnline.errors import ConfigurationError
from turnline.protocol.clock import Clock
from turnline.transport.port import Transport

ADAPTERS = MappingProxyType({"in_memory": "turnline.transport.in_memory"})


def open_transport(settings: Settings, clock: Clock) -> Transport:
    """Make the transport `execution.queues.type` names; enter it to connect.

    Raises:
        ConfigurationError: this installation has no such adapter.
    """
    name = settings.execution.queues.type
    try:
        adapter = importlib.import_module(ADAPTERS[name])
    except (KeyError, ImportError) as error:
        known = ", ".join(sorted(ADAPTERS))
        raise ConfigurationError(
            [f"execution.queues.type: this installation has no {name!r} transport; use {known}"]
        ) from error
    transport: Transport = adapter.open_transport(settings, clock)
    return transport
