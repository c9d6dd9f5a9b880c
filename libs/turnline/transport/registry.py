"""Transports by name, loaded only when chosen.

An adapter is a module with `open_transport(settings, clock) -> Transport`.  A service's package
holds only the adapters listed in its target, so a missing module is an answer, not a bug.
"""

from types import MappingProxyType

from turnline.config import Settings, load_adapter
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
    adapter = load_adapter(ADAPTERS, name)
    if adapter is None:
        known = ", ".join(sorted(ADAPTERS))
        raise ConfigurationError(
            [f"execution.queues.type: this installation has no {name!r} transport; use {known}"]
        )
    transport: Transport = adapter.open_transport(settings, clock)
    return transport
