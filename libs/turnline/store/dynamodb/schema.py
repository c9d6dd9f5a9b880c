"""The tables: their keys, index and TTL, as start-up checks them and `create_table` makes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from turnline.awssdk import call
from turnline.store.dynamodb.items import EXPIRY

if TYPE_CHECKING:
    from types_aiobotocore_dynamodb.client import DynamoDBClient  # pants: no-infer-dep
    from types_aiobotocore_dynamodb.type_defs import (
        PointInTimeRecoverySpecificationTypeDef,  # pants: no-infer-dep
        TimeToLiveSpecificationTypeDef,  # pants: no-infer-dep
    )

_CALL_SECONDS = 10.0
_MADE_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """A table with a partition key and a sort key, both texts, and TTL on `expiry_time`.

    Attributes:
        indexes: global secondary indexes: name -> their partition key, a text.
    """

    partition_key: str
    sort_key: str
    indexes: Mapping[str, str] = field(default_factory=dict)


RESPONSES = TableSchema(partition_key="request_id", sort_key="part")
SESSIONS = TableSchema(partition_key="session_id", sort_key="part")
CONNECTIONS = TableSchema(
    partition_key="user_id",
    sort_key="connection_id",
    indexes=MappingProxyType({"connection_id-index": "connection_id"}),
)


# What holds users' data is kept from accidents: not deleted by one call, and there to be restored.
GUARDED: Mapping[str, Any] = MappingProxyType(
    {"DeletionProtectionEnabled": True, "SSESpecification": {"Enabled": True}}
)
BACKUPS: "PointInTimeRecoverySpecificationTypeDef" = {"PointInTimeRecoveryEnabled": True}
LIFETIME: "TimeToLiveSpecificationTypeDef" = {"AttributeName": EXPIRY, "Enabled": True}


def table_request(name: str, schema: TableSchema) -> dict[str, Any]:
    """Give the request that makes a table billed by request; its TTL is another one."""
    keys = (schema.partition_key, schema.sort_key)
    request: dict[str, Any] = {
        "TableName": name,
        "AttributeDefinitions": attributes_of(schema),
        "KeySchema": [
            {"AttributeName": key, "KeyType": kind}
            for key, kind in zip(keys, ("HASH", "RANGE"), strict=True)
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }
    if schema.indexes:
        request["GlobalSecondaryIndexes"] = [index_of(schema, index) for index in schema.indexes]
    return request


def attributes_of(schema: TableSchema) -> list[dict[str, Any]]:
    """Give the attributes that keys and indexes are made of, all texts."""
    named = sorted({schema.partition_key, schema.sort_key, *schema.indexes.values()})
    return [{"AttributeName": key, "AttributeType": "S"} for key in named]


def index_of(schema: TableSchema, index: str) -> dict[str, Any]:
    """Give what makes an index."""
    return {
        "IndexName": index,
        "KeySchema": [{"AttributeName": schema.indexes[index], "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }


async def create_table(
    client: "DynamoDBClient", name: str, schema: TableSchema, *, guarded: bool = False
) -> None:
    """Make a table, with its TTL on, and return when it may be used.

    Args:
        guarded: keep it from being deleted by one call, encrypted by a key in the account, and with
            backups of every moment.

    Raises:
        AwsError: AWS refuses, or there is a table of that name.
    """
    request = {**table_request(name, schema), **(GUARDED if guarded else {})}
    await call(client.create_table(**request), seconds=_CALL_SECONDS)
    await call(client.get_waiter("table_exists").wait(TableName=name), seconds=_MADE_SECONDS)
    await enable_ttl(client, name)
    if guarded:
        await call(
            client.update_continuous_backups(
                TableName=name,
                PointInTimeRecoverySpecification=BACKUPS,
            ),
            seconds=_CALL_SECONDS,
        )


async def enable_ttl(client: "DynamoDBClient", name: str) -> None:
    """Have DynamoDB remove items by their `expiry_time`.

    Raises:
        AwsError: AWS refuses; it does for an hour after TTL was changed.
    """
    await call(
        client.update_time_to_live(
            TableName=name,
            TimeToLiveSpecification=LIFETIME,
        ),
        seconds=_CALL_SECONDS,
    )
