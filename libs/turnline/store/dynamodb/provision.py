"""Compares the tables wanted with those in DynamoDB; creates and mends them on demand.

What a table holds is never touched: an index is added and TTL switched on, and what only another
table would mend is told.  Throughput, tags and backups of tables that are there are their owner's
business.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from turnline.awssdk import AwsError, AwsFault, AwsOptions, call, open_client, refusal
from turnline.config.provisioning import Change
from turnline.errors import ConfigurationError, StoreUnavailableError
from turnline.store.dynamodb.fitness import Unfit, table_faults, ttl_faults
from turnline.store.dynamodb.schema import (
    TableSchema,
    attributes_of,
    create_table,
    enable_ttl,
    index_of,
)

if TYPE_CHECKING:
    from types_aiobotocore_dynamodb.client import DynamoDBClient  # pants: no-infer-dep

KIND = "table"
_CALL_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A table that the settings name.

    Attributes:
        setting: that names it, dotted.
    """

    setting: str
    name: str
    schema: TableSchema
    aws: AwsOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A table as it is.

    Attributes:
        table: what DescribeTable says; None: there is none.
        faults: what is wrong with one that is there.
    """

    table: dict[str, Any] | None
    faults: tuple[Unfit, ...] = ()


async def plan(tables: Sequence[Wanted]) -> list[Change]:
    """Give what is missing or differs; empty: all is well.

    Raises:
        ConfigurationError: DynamoDB does not let this process look.
        StoreUnavailableError: DynamoDB does not answer.
    """
    changes = []
    for wanted in tables:
        try:
            async with open_client("dynamodb", wanted.aws) as client:
                found = await _look(client, wanted)
        except AwsError as error:
            raise _translated(error, wanted, doing="look at") from error
        changes += _changes(wanted, found)
    return changes


async def apply(tables: Sequence[Wanted]) -> list[Change]:
    """Create what is missing and mend what can be; give what was done.

    Raises:
        ConfigurationError: a table cannot be mended and was left as it is, or DynamoDB refuses; the
            other tables were done.
        StoreUnavailableError: DynamoDB does not answer.
    """
    done: list[Change] = []
    faults: list[str] = []
    for wanted in tables:
        try:
            async with open_client("dynamodb", wanted.aws) as client:
                found = await _look(client, wanted)
                stuck = [fault for fault in found.faults if not fault.mendable]
                if not stuck:
                    await _put(client, wanted, found)
        except AwsError as error:
            problem = _translated(error, wanted, doing="make or change")
            if isinstance(problem, StoreUnavailableError):
                raise problem from error
            faults += problem.faults
        else:
            # TTL on a table that is somebody else's would remove what they keep.
            faults += (f"{wanted.setting}: the table {wanted.name} {f.what}" for f in stuck)
            done += [] if stuck else _changes(wanted, found)
    if faults:
        raise ConfigurationError(faults)
    return done


async def _look(client: "DynamoDBClient", wanted: Wanted) -> Found:
    name = wanted.name
    try:
        described: Any = await call(client.describe_table(TableName=name), seconds=_CALL_SECONDS)
    except AwsError as error:
        if error.fault is AwsFault.MISSING:
            return Found(table=None)
        raise
    lifetime = await call(client.describe_time_to_live(TableName=name), seconds=_CALL_SECONDS)
    table = described["Table"]
    faults = (
        *table_faults(table, wanted.schema),
        *ttl_faults(lifetime["TimeToLiveDescription"]),
    )
    return Found(table=table, faults=faults)


async def _put(client: "DynamoDBClient", wanted: Wanted, found: Found) -> None:
    if found.table is None:
        await create_table(client, wanted.name, wanted.schema, guarded=True)
        return
    for fault in found.faults:
        if fault.ttl:
            await enable_ttl(client, wanted.name)
        elif fault.index:
            request = _with_index(wanted, found.table, fault.index)
            await call(client.update_table(**request), seconds=_CALL_SECONDS)


def _with_index(wanted: Wanted, table: dict[str, Any], index: str) -> dict[str, Any]:
    """Give the request that adds an index; DynamoDB fills it while the table is in use."""
    create = index_of(wanted.schema, index)
    if table.get("BillingModeSummary", {}).get("BillingMode") != "PAY_PER_REQUEST":
        # Of a table with throughput of its own, an index needs some too.
        has = table["ProvisionedThroughput"]
        names = ("ReadCapacityUnits", "WriteCapacityUnits")
        create["ProvisionedThroughput"] = {name: has[name] for name in names}
    return {
        "TableName": wanted.name,
        "AttributeDefinitions": attributes_of(wanted.schema),
        "GlobalSecondaryIndexUpdates": [{"Create": create}],
    }


def _changes(wanted: Wanted, found: Found) -> list[Change]:
    missing = found.table is None
    if not missing and not found.faults:
        return []
    details = tuple(fault.what for fault in found.faults)
    return [Change(kind=KIND, name=wanted.name, missing=missing, details=details)]


def _translated(
    error: AwsError, wanted: Wanted, *, doing: str
) -> ConfigurationError | StoreUnavailableError:
    if error.passes:
        return StoreUnavailableError("DynamoDB does not answer")
    return refusal(error, doing=f"{doing} the table {wanted.name}", setting=wanted.setting)
