"""The registry opens the DynamoDB stores with what the settings say."""

from collections.abc import Mapping
from typing import Any

import pytest

from turnline.config import Settings
from turnline.errors import ConfigurationError
from turnline.protocol.clock import SystemClock
from turnline.store import Connection
from turnline.store.dynamodb import (
    CONNECTIONS,
    RESPONSES,
    SESSIONS,
    DynamoDbConnectionStore,
    DynamoDbResponseStore,
    DynamoDbSessionStore,
    create_table,
)
from turnline.store.dynamodb.store_rig import REGION, items_of, open_dynamodb
from turnline.store.registry import open_stores
from turnline.testing.conformance.stores.ledger_rig import run_turn
from turnline.testing.conformance.stores.reply_rig import KEY, add, reply
from turnline.testing.servers.dynamodb import DynamoDbServer

_CLOCK = SystemClock()
_SOCKET = Connection(user_id="u", connection_id="c", endpoint="local")


def _settings(server: DynamoDbServer, session: Mapping[str, Any] | None = None) -> Settings:
    def block(name: str, ttl: int) -> dict[str, Any]:
        return {
            "table_name": name,
            "ttl": ttl,
            "region": REGION,
            "endpoint_url": server.url,
        }

    return Settings.model_validate(
        {
            "execution": {
                "response_store": {"type": "dynamodb", "dynamodb": block("responses", 50)}
            },
            "session": {"type": "dynamodb", "dynamodb": block("sessions", 70), **(session or {})},
        }
    )


async def test_each_store_uses_its_own_table_and_ttl(server: DynamoDbServer) -> None:
    tables = {"responses": RESPONSES, "sessions": SESSIONS, "connections": CONNECTIONS}
    async with open_dynamodb(server.url) as client:
        for name, schema in tables.items():
            await create_table(client, name, schema)
        session = {"connection_store": {"table_name": "connections", "ttl": 90}}
        async with open_stores(_settings(server, session), _CLOCK) as stores:
            await add(stores.replies, 1, 0, 0)
            await stores.replies.put(KEY, reply(chunks=1))
            await run_turn(stores.sessions, "t1", state={"n": 1})
            await stores.connections.add(_SOCKET)
            for check in stores.checks.values():
                await check()
            kinds = (type(stores.replies), type(stores.sessions), type(stores.connections))
            checks = sorted(stores.checks)
        found = {name: await items_of(client, name) for name in tables}

    left = {
        item[key]["S"].partition("#")[0]: int(item["expiry_time"]["N"]) - _CLOCK.time()
        for key, name in (("part", "responses"), ("part", "sessions"), ("user_id", "connections"))
        for item in found[name]
    }
    assert kinds == (DynamoDbResponseStore, DynamoDbSessionStore, DynamoDbConnectionStore)
    assert checks == ["response_store", "session_store"]
    assert sorted(left) == ["chunk", "end", "ledger", "reply", "state", "turn", "u"]
    assert 40 < left["reply"] <= 51
    assert 60 < left["ledger"] <= 71
    assert 80 < left["u"] <= 91
    # These outlast what speaks of them.
    assert left["chunk"] > 140
    assert left["turn"] > 200
    assert left["state"] > 200
    assert left["end"] > 14 * 86_400


async def test_without_a_connections_table_only_connections_are_refused(
    server: DynamoDbServer,
) -> None:
    async with open_stores(_settings(server), _CLOCK) as stores:
        await run_turn(stores.sessions, "t2")
        for refused in (
            stores.connections.add(_SOCKET),
            stores.connections.remove("u", "c"),
            stores.connections.connections_of("u"),
            stores.connections.hold("u", {}),
            stores.connections.held("u"),
            stores.connections.drop_held("u", "1"),
        ):
            with pytest.raises(ConfigurationError, match="name the table"):
                await refused
