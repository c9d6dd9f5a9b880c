"""Tables that are missing, differ, or are none that a store could use."""

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from turnline.awssdk import AwsOptions
from turnline.config import Settings
from turnline.config.provisioning import Change
from turnline.errors import ConfigurationError, StoreUnavailableError
from turnline.protocol.clock import SystemClock
from turnline.store.dynamodb.provision import Wanted, apply, plan
from turnline.store.dynamodb.provisioner import DynamoDbProvisioner, open_provisioner
from turnline.store.dynamodb.schema import (
    CONNECTIONS,
    RESPONSES,
    SESSIONS,
    TableSchema,
)
from turnline.store.dynamodb.startup import open_table
from turnline.store.dynamodb.store_rig import REGION, items_of, new_name, open_dynamodb
from turnline.store.dynamodb.table import TableOptions
from turnline.testing.servers.aws_front import AwsFront, error
from turnline.testing.servers.dynamodb import DynamoDbServer

if TYPE_CHECKING:
    from types_aiobotocore_dynamodb.client import DynamoDBClient  # pants: no-infer-dep


@pytest.fixture
async def client(server: DynamoDbServer) -> AsyncIterator["DynamoDBClient"]:
    async with open_dynamodb(server.url) as client:
        yield client


def wanted(url: str, schema: TableSchema, name: str = "") -> Wanted:
    aws = AwsOptions(region=REGION, endpoint_url=url, request_seconds=2.0)
    return Wanted(setting="a.table_name", name=name or new_name(), schema=schema, aws=aws)


async def check(table: Wanted) -> None:
    """Open a table as a process does; raises ConfigurationError if it does not fit."""
    options = TableOptions(setting=table.setting, name=table.name)
    async with open_table(table.schema, options, table.aws, SystemClock()):
        pass


async def make(client: "DynamoDBClient", keys: Sequence[str], **more: object) -> str:
    """Make a table with these keys and no TTL."""
    name = new_name()
    request: dict[str, Any] = {
        "TableName": name,
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"} for key in keys],
        "KeySchema": [
            {"AttributeName": key, "KeyType": kind}
            for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)
        ],
        "BillingMode": "PAY_PER_REQUEST",
    }
    await client.create_table(**(request | more))
    return name


async def test_what_is_missing_is_told_then_made_once(
    server: DynamoDbServer, client: "DynamoDBClient"
) -> None:
    tables = [wanted(server.url, schema) for schema in (RESPONSES, SESSIONS, CONNECTIONS)]
    expected = [Change(kind="table", name=each.name, missing=True, details=()) for each in tables]

    assert await plan(tables) == await plan(tables) == expected
    assert not {each.name for each in tables} & set((await client.list_tables())["TableNames"])
    assert await apply(tables) == expected
    for table in tables:
        await check(table)
    assert await plan(tables) == await apply(tables) == []


async def test_a_table_that_is_made_is_kept_from_accidents(
    server: DynamoDbServer, client: "DynamoDBClient"
) -> None:
    table = wanted(server.url, SESSIONS)

    await apply([table])

    found = (await client.describe_table(TableName=table.name))["Table"]
    backups = await client.describe_continuous_backups(TableName=table.name)
    assert found["DeletionProtectionEnabled"]
    assert found["SSEDescription"]["Status"] == "ENABLED"
    described = backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]
    assert described["PointInTimeRecoveryStatus"] == "ENABLED"


async def test_a_missing_index_and_ttl_are_added_to_a_table_that_keeps_what_it_holds(
    server: DynamoDbServer, client: "DynamoDBClient"
) -> None:
    name = await make(client, ("user_id", "connection_id"))
    item: Any = {"user_id": {"S": "u"}, "connection_id": {"S": "c"}}
    await client.put_item(TableName=name, Item=item)
    table = wanted(server.url, CONNECTIONS, name)

    [planned] = await plan([table])
    done = await apply([table])

    assert [detail.partition(" with")[0].partition(",")[0] for detail in planned.details] == [
        "has no global secondary index connection_id-index",
        "has no TTL",
    ]
    assert done == [planned]
    await check(table)
    assert await items_of(client, name) == [item]
    assert await plan([table]) == []


async def test_an_index_of_a_table_with_throughput_of_its_own_gets_as_much(
    server: DynamoDbServer, client: "DynamoDBClient"
) -> None:
    units: Any = {"ReadCapacityUnits": 7, "WriteCapacityUnits": 3}
    name = await make(
        client,
        ("user_id", "connection_id"),
        BillingMode="PROVISIONED",
        ProvisionedThroughput=units,
    )

    await apply([wanted(server.url, CONNECTIONS, name)])

    table = (await client.describe_table(TableName=name))["Table"]
    [index] = table["GlobalSecondaryIndexes"]
    assert index["ProvisionedThroughput"].items() >= units.items()


async def test_a_table_with_other_keys_is_told_and_left_as_it_is_and_the_others_are_made(
    server: DynamoDbServer, client: "DynamoDBClient"
) -> None:
    foreign = wanted(server.url, SESSIONS, await make(client, ("id",)))
    missing = wanted(server.url, RESPONSES)

    [planned, _] = await plan([foreign, missing])
    with pytest.raises(ConfigurationError) as refused:
        await apply([foreign, missing])

    lifetime = await client.describe_time_to_live(TableName=foreign.name)
    [fault] = refused.value.faults
    assert not planned.missing
    assert fault.startswith(f"a.table_name: the table {foreign.name} has the key id (HASH)")
    assert lifetime["TimeToLiveDescription"]["TimeToLiveStatus"] == "DISABLED"
    await check(missing)


async def test_an_index_of_the_name_with_another_key_is_told_and_kept(
    server: DynamoDbServer, client: "DynamoDBClient"
) -> None:
    index = {
        "IndexName": "connection_id-index",
        "KeySchema": [{"AttributeName": "user_id", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    keys = ("user_id", "connection_id")
    name = await make(client, keys, GlobalSecondaryIndexes=[index])

    with pytest.raises(ConfigurationError) as refused:
        await apply([wanted(server.url, CONNECTIONS, name)])

    assert "remove the one of that name, and add it" in refused.value.faults[0]


async def test_ttl_on_another_attribute_is_told_and_kept(
    server: DynamoDbServer, client: "DynamoDBClient"
) -> None:
    name = await make(client, ("session_id", "part"))
    other: Any = {"Enabled": True, "AttributeName": "gone_at"}
    await client.update_time_to_live(TableName=name, TimeToLiveSpecification=other)

    with pytest.raises(ConfigurationError, match="TTL on the attribute gone_at"):
        await apply([wanted(server.url, SESSIONS, name)])


async def test_a_refusal_names_the_setting_and_the_others_are_made(
    server: DynamoDbServer, front: AwsFront
) -> None:
    denied, other = wanted(front.url, SESSIONS), wanted(server.url, RESPONSES)
    front.always("CreateTable", error(400, "AccessDeniedException", "no"))

    with pytest.raises(ConfigurationError) as refused:
        await apply([denied, other])

    [fault] = refused.value.faults
    assert fault.startswith(f"a.table_name: can't make or change the table {denied.name}: Access")
    await check(other)


async def test_a_server_that_is_away_is_no_fault_of_the_settings() -> None:
    table = wanted("http://127.0.0.1:1", SESSIONS)

    with pytest.raises(StoreUnavailableError):
        await plan([table])
    with pytest.raises(StoreUnavailableError):
        await apply([table])


def settings(**session: object) -> Settings:
    return Settings.model_validate(
        {
            "execution": {
                "response_store": {"type": "dynamodb", "dynamodb": {"table_name": "answers"}}
            },
            "session": {"type": "dynamodb", "dynamodb": {"table_name": "talks"}, **session},
        }
    )


def test_the_template_holds_the_tables_that_settings_name() -> None:
    named = settings(connection_store={"table_name": "sockets"})

    template = yaml.safe_load(open_provisioner(named, SystemClock()).manifests())

    tables = {name: of["Properties"] for name, of in template["Resources"].items()}
    assert {name: of["TableName"] for name, of in tables.items()} == {
        "ResponsesTable": "answers",
        "SessionsTable": "talks",
        "ConnectionsTable": "sockets",
    }
    [index] = tables["ConnectionsTable"]["GlobalSecondaryIndexes"]
    assert index["IndexName"] == "connection_id-index"
    for table in tables.values():
        assert table["TimeToLiveSpecification"] == {"AttributeName": "expiry_time", "Enabled": True}
        assert table["DeletionProtectionEnabled"]


def test_sockets_without_a_table_need_none() -> None:
    template = yaml.safe_load(open_provisioner(settings(), SystemClock()).manifests())

    assert list(template["Resources"]) == ["ResponsesTable", "SessionsTable"]


async def test_a_provisioner_compares_and_makes(server: DynamoDbServer) -> None:
    table = wanted(server.url, SESSIONS)
    async with DynamoDbProvisioner([table]) as provisioner:
        planned, made = await provisioner.plan(), await provisioner.apply()

    assert planned == made
    await check(table)
