"""The DynamoDB stores as the registry opens them: which table, from which block of the settings."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from turnline.awssdk import AwsOptions
from turnline.config import Settings
from turnline.config.stores import DynamoDb
from turnline.errors import ConfigurationError
from turnline.protocol.clock import Clock
from turnline.store.dynamodb.connections import DynamoDbConnectionOptions, DynamoDbConnectionStore
from turnline.store.dynamodb.provision import Wanted
from turnline.store.dynamodb.replies import DynamoDbResponseOptions, DynamoDbResponseStore
from turnline.store.dynamodb.schema import CONNECTIONS, RESPONSES, SESSIONS, TableSchema
from turnline.store.dynamodb.sessions import DynamoDbSessionOptions, DynamoDbSessionStore
from turnline.store.dynamodb.startup import open_table
from turnline.store.dynamodb.table import TRY_SECONDS, TableOptions
from turnline.store.ports import Connection, ConnectionStore, Held, ResponseStore, SessionStore

_RESPONSE_TABLE = "execution.response_store.dynamodb.table_name"
_SESSION_TABLE = "session.dynamodb.table_name"
_CONNECTION_TABLE = "session.connection_store.table_name"


@asynccontextmanager
async def open_response_store(settings: Settings, clock: Clock) -> AsyncIterator[ResponseStore]:
    """Give the store `execution.response_store` describes.

    Raises:
        ConfigurationError: see `open_table`.
    """
    block = settings.execution.response_store.dynamodb
    options = _options(_RESPONSE_TABLE, block.table_name)
    async with open_table(RESPONSES, options, _aws(block), clock) as table:
        yield DynamoDbResponseStore(DynamoDbResponseOptions(ttl=block.ttl), table)


@asynccontextmanager
async def open_session_store(settings: Settings, clock: Clock) -> AsyncIterator[SessionStore]:
    """Give the store `session` describes.

    Raises:
        ConfigurationError: see `open_table`.
    """
    block = settings.session.dynamodb
    options = _options(_SESSION_TABLE, block.table_name)
    kept = DynamoDbSessionOptions(
        ttl=block.ttl, max_history_turns=settings.session.max_history_turns
    )
    async with open_table(SESSIONS, options, _aws(block), clock) as table:
        yield DynamoDbSessionStore(kept, table)


@asynccontextmanager
async def open_connection_store(settings: Settings, clock: Clock) -> AsyncIterator[ConnectionStore]:
    """Give the store `session.connection_store` describes.

    A table need not be named where no socket is ever held: the store refuses every call then.

    Raises:
        ConfigurationError: see `open_table`.
    """
    asked = settings.session.connection_store
    name = _connection_table(settings)
    if name is None:
        yield NoConnectionStore()
        return
    options = _options(_CONNECTION_TABLE, name)
    async with open_table(CONNECTIONS, options, _aws(settings.session.dynamodb), clock) as table:
        yield DynamoDbConnectionStore(DynamoDbConnectionOptions(ttl=asked.ttl), table)


def tables_of(settings: Settings) -> list[Wanted]:
    """Give the tables of the stores that are on DynamoDB, as the settings name them.

    Raises:
        ConfigurationError: a store has no table; sockets need none.
    """
    wanted: list[tuple[str, str | None, TableSchema, DynamoDb]] = []
    store, session = settings.execution.response_store, settings.session
    if store.type == "dynamodb":
        wanted.append((_RESPONSE_TABLE, store.dynamodb.table_name, RESPONSES, store.dynamodb))
    if session.type == "dynamodb":
        block = session.dynamodb
        wanted.append((_SESSION_TABLE, block.table_name, SESSIONS, block))
        if (sockets := _connection_table(settings)) is not None:
            wanted.append((_CONNECTION_TABLE, sockets, CONNECTIONS, block))
    return [
        Wanted(setting=setting, name=_options(setting, name).name, schema=schema, aws=_aws(block))
        for setting, name, schema, block in wanted
    ]


class NoConnectionStore:
    """A ConnectionStore without a table; every method raises ConfigurationError."""

    async def add(self, connection: Connection) -> None:
        """Refuse."""
        raise _unnamed()

    async def remove(self, user_id: str, connection_id: str) -> None:
        """Refuse."""
        raise _unnamed()

    async def connections_of(self, user_id: str) -> Sequence[Connection]:
        """Refuse."""
        raise _unnamed()

    async def hold(self, user_id: str, frame: dict[str, Any]) -> None:
        """Refuse."""
        raise _unnamed()

    async def held(self, user_id: str) -> Held:
        """Refuse."""
        raise _unnamed()

    async def drop_held(self, user_id: str, through: str) -> None:
        """Refuse."""
        raise _unnamed()


def _unnamed() -> ConfigurationError:
    return ConfigurationError(
        [f"{_CONNECTION_TABLE}: is not set, so there are no client sockets; name the table"]
    )


def _connection_table(settings: Settings) -> str | None:
    return settings.session.connection_store.table_name or settings.websocket_api.connection_table


def _options(setting: str, name: str | None) -> TableOptions:
    if name is None:
        raise ConfigurationError([f"{setting}: is not set; name the existing table"])
    return TableOptions(setting=setting, name=name)


def _aws(block: DynamoDb) -> AwsOptions:
    return AwsOptions(
        region=block.region, endpoint_url=block.endpoint_url, request_seconds=TRY_SECONDS
    )
