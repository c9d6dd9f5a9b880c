"""Opening the table a setting names: the client, and the checks at start-up.

Tables are there before a process starts; nothing here makes one.  What a process may not ask about
is not checked, and a warning says so.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from turnline.awssdk import AwsError, AwsFault, AwsOptions, call, open_client, refusal
from turnline.errors import ConfigurationError
from turnline.protocol.clock import Clock
from turnline.store.dynamodb.items import EXPIRY
from turnline.store.dynamodb.schema import TableSchema
from turnline.store.dynamodb.table import Table, TableOptions
from turnline.telemetry import get_logger

if TYPE_CHECKING:
    from types_aiobotocore_dynamodb.client import DynamoDBClient  # pants: no-infer-dep

_log = get_logger("store")

START_SECONDS = 10.0
_ASK_AGAIN_SECONDS = 0.2
# A tenth of the usual lease, and the second of which DynamoDB's answers tell no parts.
_CLOCK_SECONDS = 2.0
_USABLE = ("ACTIVE", "UPDATING")


@asynccontextmanager
async def open_table(
    schema: TableSchema,
    options: TableOptions,
    aws: AwsOptions,
    clock: Clock,
    *,
    start_within: float = START_SECONDS,
) -> AsyncIterator[Table]:
    """Check a table, and give it for the length of the block.

    Args:
        start_within: seconds DynamoDB may take to answer at all.

    Raises:
        ConfigurationError: AWS can't be reached or refuses, or the table is unfit; names every
            fault of the table, each with its fix.
    """
    doing = f"open the table {options.name}"
    try:
        async with open_client("dynamodb", aws) as client:
            await _check(client, schema, options, clock, clock.monotonic() + start_within)
            yield Table(client, schema, options, clock)
    except AwsError as error:
        raise refusal(error, doing=doing, setting=options.setting) from error


async def _check(
    client: "DynamoDBClient",
    schema: TableSchema,
    options: TableOptions,
    clock: Clock,
    until: float,
) -> None:
    name, setting = options.name, options.setting

    async def ask(action: str, make: Callable[[], Awaitable[Any]]) -> Mapping[str, Any] | None:
        return await _ask(setting, action, make, options, clock, until)

    described = await ask("DescribeTable", lambda: client.describe_table(TableName=name))
    lifetime = await ask("DescribeTimeToLive", lambda: client.describe_time_to_live(TableName=name))
    faults: list[str] = []
    if described is not None:
        _check_clock(described, setting, clock)
        _check_replicas(described["Table"], setting)
        faults += _table_faults(described["Table"], schema)
    if lifetime is not None:
        faults += _ttl_faults(lifetime["TimeToLiveDescription"])
    if faults:
        raise ConfigurationError([f"{setting}: the table {name} {fault}" for fault in faults])


async def _ask(
    setting: str,
    action: str,
    make: Callable[[], Awaitable[Any]],
    options: TableOptions,
    clock: Clock,
    until: float,
) -> Mapping[str, Any] | None:
    """Ask until there is an answer; None: this process may not ask."""

    async def once() -> Any:  # noqa: ANN401  # an answer, of the client's own types
        return await make()

    while True:
        try:
            answer: Mapping[str, Any] = await call(once(), seconds=options.try_seconds)
            return answer
        except AwsError as error:
            if error.fault is AwsFault.MISSING:
                raise ConfigurationError(
                    [
                        f"{setting}: there is no table {options.name} in this account and region; "
                        "make it, or set the name and the region of one that is there"
                    ]
                ) from error
            if error.code == "AccessDeniedException":
                reason = f"dynamodb:{action} is not allowed, so the table is not checked"
                _log.warning("config.warning", setting=setting, reason=reason)
                return None
            if not error.passes or clock.monotonic() >= until:
                raise
        await clock.sleep_until(clock.monotonic() + _ASK_AGAIN_SECONDS)


def _table_faults(table: Mapping[str, Any], schema: TableSchema) -> Iterator[str]:
    if table["TableStatus"] not in _USABLE:
        yield f"is {table['TableStatus']}; wait until it is ACTIVE, or mend it"
    types = {each["AttributeName"]: each["AttributeType"] for each in table["AttributeDefinitions"]}
    found = _keys(table["KeySchema"])
    wanted = {"HASH": schema.partition_key, "RANGE": schema.sort_key}
    if found != wanted:
        has = " and ".join(f"{name} ({kind})" for kind, name in sorted(found.items()))
        yield (
            f"has the key {has}, which cannot be changed; make a table with the partition key "
            f"{schema.partition_key} and the sort key {schema.sort_key}, both strings"
        )
    for key in sorted({*found.values(), *schema.indexes.values()} & types.keys()):
        if types[key] != "S":
            yield f"has {key} of type {types[key]}, which cannot be changed; make one with type S"
    indexes = {
        index["IndexName"]: _keys(index["KeySchema"])
        for index in table.get("GlobalSecondaryIndexes") or ()
    }
    for index, key in schema.indexes.items():
        if indexes.get(index) != {"HASH": key}:
            yield (
                f"has no global secondary index {index} with the partition key {key} alone; "
                "add it"
            )


def _keys(key_schema: Any) -> Mapping[str, str]:  # noqa: ANN401  # of the client's own types
    return {each["KeyType"]: each["AttributeName"] for each in key_schema}


def _ttl_faults(lifetime: Mapping[str, Any]) -> Iterator[str]:
    attribute = lifetime.get("AttributeName")
    if lifetime["TimeToLiveStatus"] not in ("ENABLED", "ENABLING"):
        yield f"has no TTL, so that it grows for ever; enable TTL on the attribute {EXPIRY}"
    elif attribute != EXPIRY:
        yield f"has its TTL on the attribute {attribute}; disable it, and enable it on {EXPIRY}"


def _check_replicas(table: Mapping[str, Any], setting: str) -> None:
    if table.get("Replicas") and table.get("MultiRegionConsistency") != "STRONG":
        _log.warning(
            "config.warning",
            setting=setting,
            reason="the table is replicated to other regions, where conditions see old items; "
            "run every service in one region",
        )


def _check_clock(described: Mapping[str, Any], setting: str, clock: Clock) -> None:
    told = described["ResponseMetadata"]["HTTPHeaders"].get("date")
    if told is None:
        return
    ahead = clock.time() - parsedate_to_datetime(told).timestamp()
    # A told second began up to a second ago.
    if not -_CLOCK_SECONDS < ahead < _CLOCK_SECONDS + 1:
        _log.warning(
            "config.warning",
            setting=setting,
            reason=f"this machine's clock is {ahead:+.0f} s off DynamoDB's; leases and TTLs are "
            "compared by it, so keep it in time",
        )
