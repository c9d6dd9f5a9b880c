"""Transports by name, loaded only when chosen.

An adapter is a module with `open_transport(settings, clock) -> Transport` and, where its broker
holds objects that must be made, `open_provisioner(settings, clock) -> Provisioner`.  One whose
broker neither counts deliveries nor drops copies sets `NEEDS_BOOKKEEPING` and takes a
`Bookkeeping`, or None, as the third argument of `open_transport`.  A service's package holds only
the adapters listed in its target, so a missing module is an answer, not a bug.
"""

from types import MappingProxyType, ModuleType

from turnline.config import Settings, load_adapter
from turnline.config.provisioning import Provisioner
from turnline.errors import ConfigurationError
from turnline.protocol.clock import Clock
from turnline.transport.port import Bookkeeping, Transport

ADAPTERS = MappingProxyType(
    {
        "in_memory": "turnline.transport.in_memory",
        "kafka": "turnline.transport.kafka",
        "nats": "turnline.transport.nats",
        "sqs": "turnline.transport.sqs",
    }
)


def needs_bookkeeping(settings: Settings) -> bool:
    """Whether the transport `execution.queues.type` names has use for `Bookkeeping`.

    Raises:
        ConfigurationError: this installation has no such adapter.
    """
    return bool(getattr(_adapter(settings), "NEEDS_BOOKKEEPING", False))


def open_transport(
    settings: Settings, clock: Clock, bookkeeping: Bookkeeping | None = None
) -> Transport:
    """Make the transport `execution.queues.type` names; enter it to connect.

    Args:
        bookkeeping: shared with other processes; None: what is needed is kept in this one.

    Raises:
        ConfigurationError: this installation has no such adapter.
    """
    make = _adapter(settings).open_transport
    more = (bookkeeping,) if needs_bookkeeping(settings) else ()
    transport: Transport = make(settings, clock, *more)
    return transport


def open_provisioner(settings: Settings, clock: Clock) -> Provisioner | None:
    """Make the provisioner of the transport that `execution.queues.type` names.

    None: this transport needs nothing made.

    Raises:
        ConfigurationError: this installation has no such adapter.
    """
    make = getattr(_adapter(settings), "open_provisioner", None)
    if make is None:
        return None
    provisioner: Provisioner = make(settings, clock)
    return provisioner


def _adapter(settings: Settings) -> ModuleType:
    name = settings.execution.queues.type
    adapter = load_adapter(ADAPTERS, name)
    if adapter is None:
        known = ", ".join(sorted(ADAPTERS))
        raise ConfigurationError(
            [f"execution.queues.type: this installation has no {name!r} transport; use {known}"]
        )
    return adapter
