"""The tables: their keys, index and TTL, as start-up checks them and `create_table` makes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from turnline.awssdk import call
from turnline.store.dynamodb.items import EXPIRY

if TYPE_CHECKING:
    from types_aiobotocore_dynamodb.client import DynamoDBClient  # pants: no-infer-dep

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


def table_request(name: str, schema: TableSchema) -> dict[str, Any]:
    """Give the request that makes a table billed by request; its TTL is another one."""
    keys = (schema.partition_key, schema.sort_key)
    named = sorted({*keys, *schema.indexes.values()})
    request: dict[str, Any] = {
        "TableName": name,
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"} for key in named],
        "KeySchema": [
            {"AttributeName": key, "KeyType": kind}
            for key, kind in zip(keys, ("HASH", "RANGE"), strict=True)
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }
    if schema.indexes:
        request["GlobalSecondaryIndexes"] = [
            {
                "IndexName": index,
                "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
            for index, key in schema.indexes.items()
        ]
    return request


async def create_table(client: "DynamoDBClient", name: str, schema: TableSchema) -> None:
    """Make a table, with its TTL on, and return when it may be used.

    Raises:
        AwsError: AWS refuses, or there is a table of that name.
    """
    await call(client.create_table(**table_request(name, schema)), seconds=_CALL_SECONDS)
    await call(client.get_waiter("table_exists").wait(TableName=name), seconds=_MADE_SECONDS)
    await call(
        client.update_time_to_live(
            TableName=name,
            TimeToLiveSpecification={"Enabled": True, "AttributeName": EXPIRY},
        ),
        seconds=_CALL_SECONDS,
    )
