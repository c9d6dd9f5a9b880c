"""The tables of the DynamoDB stores for whoever runs it; see `turnline.config.provisioning`."""

from collections.abc import Sequence
from typing import Self

from turnline.config import Settings
from turnline.config.provisioning import Change
from turnline.protocol.clock import Clock
from turnline.store.dynamodb import provision
from turnline.store.dynamodb.adapter import tables_of
from turnline.store.dynamodb.manifests import manifests_of
from turnline.store.dynamodb.provision import Wanted


class DynamoDbProvisioner:
    """Tables: what is missing, making it, and writing it down."""

    def __init__(self, tables: Sequence[Wanted]) -> None:
        self._tables = tables

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Nothing to close: each table has a client of its own."""

    async def plan(self) -> Sequence[Change]:
        """Give what is missing or differs."""
        return await provision.plan(self._tables)

    async def apply(self) -> Sequence[Change]:
        """Create and mend; give what was done."""
        return await provision.apply(self._tables)

    def manifests(self) -> str:
        """Give the tables as a CloudFormation template."""
        return manifests_of(self._tables)


def open_provisioner(settings: Settings, _clock: Clock) -> DynamoDbProvisioner:
    """Make the provisioner of the tables that settings name, of the stores that are on DynamoDB.

    Raises:
        ConfigurationError: a store is on DynamoDB, and its table has no name.
    """
    return DynamoDbProvisioner(tables_of(settings))
