"""The topics of the Kafka transport for whoever runs it; see `turnline.config.provisioning`."""

from collections.abc import Sequence
from typing import Self

from turnline.config import Settings
from turnline.config.provisioning import Change
from turnline.protocol.clock import Clock
from turnline.transport.kafka import provision
from turnline.transport.kafka.admin import Admin
from turnline.transport.kafka.clients import admin_config, check_client_config
from turnline.transport.kafka.manifests import manifests_of
from turnline.transport.kafka.options import KafkaOptions, options_from
from turnline.transport.kafka.topology import topology_of


class KafkaProvisioner:
    """Topics: what is missing, making it, and writing it down."""

    def __init__(self, options: KafkaOptions) -> None:
        check_client_config(options.client_config)
        self._options = options
        self._topology = topology_of(options)
        self._admin = Admin(admin_config(options), seconds=options.request_timeout)

    async def __aenter__(self) -> Self:
        self._admin.open()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._admin.close()

    async def plan(self) -> Sequence[Change]:
        """Give what is missing or differs."""
        seconds = self._options.metadata_timeout
        await self._admin.greet(seconds)
        return await provision.plan(self._admin, self._topology, seconds=seconds)

    async def apply(self) -> Sequence[Change]:
        """Create and update; give what was done."""
        seconds = self._options.metadata_timeout
        await self._admin.greet(seconds)
        return await provision.apply(self._admin, self._topology, seconds=seconds)

    def manifests(self) -> str:
        """Give the topics as resources of Strimzi (https://strimzi.io)."""
        return manifests_of(self._topology)


def open_provisioner(settings: Settings, clock: Clock) -> KafkaProvisioner:
    """Make the provisioner for `execution.queues.kafka`; enter it to connect."""
    del clock  # nothing here waits for a time
    return KafkaProvisioner(options_from(settings))
