"""The objects of the NATS transport for whoever runs it; see `turnline.config.provisioning`."""

from collections.abc import Sequence
from typing import Self

from turnline.config import Settings
from turnline.config.provisioning import Change
from turnline.protocol.clock import Clock
from turnline.transport.nats import provision
from turnline.transport.nats.connection import Connection
from turnline.transport.nats.jetstream import JetStream
from turnline.transport.nats.manifests import manifests_of
from turnline.transport.nats.options import NatsOptions, options_from
from turnline.transport.nats.topology import topology_of


class NatsProvisioner:
    """Streams and consumers: what is missing, making it, and writing it down."""

    def __init__(self, options: NatsOptions, clock: Clock) -> None:
        self._topology = topology_of(options)
        self._connection = Connection(options.server, clock)
        self._api = JetStream(self._connection)

    async def __aenter__(self) -> Self:
        await self._connection.open()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._connection.close()

    async def plan(self) -> Sequence[Change]:
        """Give what is missing or differs."""
        return await provision.plan(self._api, self._topology)

    async def apply(self) -> Sequence[Change]:
        """Create and update; give what was done."""
        return await provision.apply(self._api, self._topology)

    def manifests(self) -> str:
        """Give the objects as resources of NACK (https://github.com/nats-io/nack)."""
        return manifests_of(self._topology)


def open_provisioner(settings: Settings, clock: Clock) -> NatsProvisioner:
    """Make the provisioner for `execution.queues.nats`; enter it to connect."""
    return NatsProvisioner(options_from(settings), clock)
