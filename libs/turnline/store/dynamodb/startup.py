"""Opening the table a setting names: the client, and the checks at start-up.

Tables are there before a process starts; nothing here makes one.  What a process may not ask about
is not checked, and a warning says so.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from turnline.awssdk import AwsError, AwsFault, AwsOptions, call, open_client, refusal
from turnline.errors import ConfigurationError
from turnline.protocol.clock import Clock
from turnline.store.dynamodb.fitness import table_faults, ttl_faults
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
        faults += (fault.what for fault in table_faults(described["Table"], schema))
    if lifetime is not None:
        faults += (fault.what for fault in ttl_faults(lifetime["TimeToLiveDescription"]))
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
                        "run `turnline provision`, or set the name and region of one that is there"
                    ]
                ) from error
            if error.code == "AccessDeniedException":
                reason = f"dynamodb:{action} is not allowed, so the table is not checked"
                _log.warning("config.warning", setting=setting, reason=reason)
                return None
            if not error.passes or clock.monotonic() >= until:
                raise
        await clock.sleep_until(clock.monotonic() + _ASK_AGAIN_SECONDS)


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
