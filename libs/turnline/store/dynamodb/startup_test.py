"""What is refused at start-up, and how its fix is said."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest

from turnline.awssdk import AwsOptions
from turnline.errors import ConfigurationError
from turnline.protocol.clock import Clock, SystemClock
from turnline.store.dynamodb.schema import (
    CONNECTIONS,
    RESPONSES,
    SESSIONS,
    TableSchema,
    create_table,
)
from turnline.store.dynamodb.startup import open_table
from turnline.store.dynamodb.store_rig import REGION, MovedClock, new_name, open_dynamodb
from turnline.store.dynamodb.table import TableOptions
from turnline.telemetry.capture import captured_logs
from turnline.testing.servers.aws_front import Answer, AwsFront, error
from turnline.testing.servers.dynamodb import DynamoDbServer

if TYPE_CHECKING:
    from types_aiobotocore_dynamodb.client import DynamoDBClient  # pants: no-infer-dep

_CLOCK = SystemClock()


@pytest.fixture
async def client(server: DynamoDbServer) -> AsyncIterator["DynamoDBClient"]:
    async with open_dynamodb(server.url) as client:
        yield client


async def _open(
    url: str, name: str, schema: TableSchema, *, within: float = 5.0, clock: Clock = _CLOCK
) -> None:
    options = TableOptions(setting="a.table_name", name=name, try_seconds=1.0)
    aws = AwsOptions(region=REGION, endpoint_url=url, request_seconds=1.0)
    async with open_table(schema, options, aws, clock, start_within=within) as table:
        await table.check()


async def _faults(
    url: str, name: str, schema: TableSchema, *, within: float = 5.0
) -> tuple[str, ...]:
    with pytest.raises(ConfigurationError) as refused:
        await _open(url, name, schema, within=within)
    assert all(fault.startswith("a.table_name: ") for fault in refused.value.faults)
    return refused.value.faults


def _warnings(logs: list[dict[str, Any]]) -> list[str]:
    return [log["reason"] for log in logs if log["event"] == "config.warning"]


async def _make(client: "DynamoDBClient", **changes: object) -> str:
    """Make a table of sessions that is wrong somewhere."""
    name = new_name()
    request: dict[str, Any] = {
        "TableName": name,
        "AttributeDefinitions": [
            {"AttributeName": "session_id", "AttributeType": "S"},
            {"AttributeName": "part", "AttributeType": "S"},
        ],
        "KeySchema": [
            {"AttributeName": "session_id", "KeyType": "HASH"},
            {"AttributeName": "part", "KeyType": "RANGE"},
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }
    await client.create_table(**(request | changes))
    return name


@pytest.mark.parametrize("schema", [RESPONSES, SESSIONS, CONNECTIONS])
async def test_a_table_that_create_table_made_fits(
    server: DynamoDbServer, client: "DynamoDBClient", schema: TableSchema
) -> None:
    name = new_name()
    await create_table(client, name, schema)

    with captured_logs() as logs:
        await _open(server.url, name, schema)

    assert not _warnings(logs)


async def test_a_missing_table_is_named(server: DynamoDbServer) -> None:
    (fault,) = await _faults(server.url, "nowhere", SESSIONS)

    assert "no table nowhere in this account and region" in fault


async def test_every_fault_of_a_table_is_named_at_once(
    server: DynamoDbServer, client: "DynamoDBClient"
) -> None:
    name = await _make(client)

    faults = await _faults(server.url, name, CONNECTIONS)

    assert len(faults) == 3
    assert "partition key user_id and the sort key connection_id" in faults[0]
    assert "global secondary index connection_id-index" in faults[1]
    assert "enable TTL on the attribute expiry_time" in faults[2]


async def test_a_table_without_sort_key_is_refused(
    server: DynamoDbServer, client: "DynamoDBClient"
) -> None:
    name = await _make(
        client,
        AttributeDefinitions=[{"AttributeName": "session_id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "session_id", "KeyType": "HASH"}],
    )

    assert "the sort key part" in (await _faults(server.url, name, SESSIONS))[0]


async def test_a_key_of_another_type_is_refused(
    server: DynamoDbServer, client: "DynamoDBClient"
) -> None:
    name = await _make(
        client,
        AttributeDefinitions=[
            {"AttributeName": "session_id", "AttributeType": "S"},
            {"AttributeName": "part", "AttributeType": "N"},
        ],
    )

    assert "part of type N" in (await _faults(server.url, name, SESSIONS))[0]


async def test_a_ttl_on_another_attribute_is_refused(
    server: DynamoDbServer, client: "DynamoDBClient"
) -> None:
    name = await _make(client)
    await client.update_time_to_live(
        TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"}
    )

    (fault,) = await _faults(server.url, name, SESSIONS)

    assert "TTL on the attribute ttl" in fault


async def test_an_index_with_another_key_is_refused(
    server: DynamoDbServer, client: "DynamoDBClient"
) -> None:
    name = new_name()
    wrong = TableSchema(
        partition_key="user_id",
        sort_key="connection_id",
        indexes={"connection_id-index": "endpoint"},
    )
    await create_table(client, name, wrong)

    (fault,) = await _faults(server.url, name, CONNECTIONS)

    assert "with the partition key connection_id alone" in fault


async def test_a_table_that_may_not_be_described_is_used_with_a_warning(
    client: "DynamoDBClient", front: AwsFront
) -> None:
    name = new_name()
    await create_table(client, name, SESSIONS)
    for operation in ("DescribeTable", "DescribeTimeToLive"):
        front.always(operation, error(400, "AccessDeniedException", "arn:aws:..."))

    with captured_logs() as logs:
        await _open(front.url, name, SESSIONS)

    reasons = _warnings(logs)
    assert [reason.split()[0] for reason in reasons] == [
        "dynamodb:DescribeTable",
        "dynamodb:DescribeTimeToLive",
    ]


async def test_credentials_that_do_not_work_are_a_fault_with_its_fix(front: AwsFront) -> None:
    front.always("DescribeTable", error(400, "UnrecognizedClientException", "bad token"))

    (fault,) = await _faults(front.url, "t", SESSIONS)

    assert "UnrecognizedClientException; give AWS credentials that work" in fault


async def test_nobody_there_is_a_fault_after_a_while() -> None:
    (fault,) = await _faults("http://127.0.0.1:1", "t", SESSIONS, within=0.5)

    assert "can't open the table t: EndpointConnectionError" in fault


async def test_a_server_that_comes_late_is_waited_for(
    client: "DynamoDBClient", front: AwsFront
) -> None:
    name = new_name()
    await create_table(client, name, SESSIONS)
    front.next("DescribeTable", *[error(503, "ServiceUnavailable")] * 3)

    await _open(front.url, name, SESSIONS)

    assert len(front.made("DescribeTable")) == 4


async def test_a_table_that_is_being_deleted_is_refused(
    client: "DynamoDBClient", front: AwsFront
) -> None:
    name = await _make(client)
    table = dict((await client.describe_table(TableName=name))["Table"])
    del table["CreationDateTime"]
    front.always("DescribeTable", Answer(body={"Table": table | {"TableStatus": "DELETING"}}))

    faults = await _faults(front.url, name, SESSIONS)

    assert "is DELETING" in faults[0]


@pytest.mark.parametrize("ahead", [-120.0, 120.0])
async def test_a_clock_that_is_off_is_warned_of(
    server: DynamoDbServer, client: "DynamoDBClient", ahead: float
) -> None:
    name, clock = new_name(), MovedClock()
    await create_table(client, name, SESSIONS)
    clock.move(ahead)

    with captured_logs() as logs:
        await _open(server.url, name, SESSIONS, clock=clock)

    (reason,) = _warnings(logs)
    assert "clock is" in reason


async def test_a_table_in_several_regions_is_warned_of(
    client: "DynamoDBClient", front: AwsFront
) -> None:
    name = await _make(client)
    table = dict((await client.describe_table(TableName=name))["Table"])
    del table["CreationDateTime"]
    replicas = {"Replicas": [{"RegionName": "eu-west-1"}, {"RegionName": "us-east-1"}]}
    front.always("DescribeTable", Answer(body={"Table": table | replicas}))
    lifetime = {"TimeToLiveStatus": "ENABLED", "AttributeName": "expiry_time"}
    front.always("DescribeTimeToLive", Answer(body={"TimeToLiveDescription": lifetime}))

    with captured_logs() as logs:
        await _open(front.url, name, SESSIONS)

    assert "replicated" in _warnings(logs)[0]
