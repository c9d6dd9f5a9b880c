"""Stores in DynamoDB tables, shared by any number of processes."""

from turnline.store.dynamodb.adapter import (
    open_connection_store,
    open_response_store,
    open_session_store,
)
from turnline.store.dynamodb.connections import DynamoDbConnectionOptions, DynamoDbConnectionStore
from turnline.store.dynamodb.provisioner import DynamoDbProvisioner, open_provisioner
from turnline.store.dynamodb.replies import DynamoDbResponseOptions, DynamoDbResponseStore
from turnline.store.dynamodb.schema import (
    CONNECTIONS,
    RESPONSES,
    SESSIONS,
    TableSchema,
    create_table,
)
from turnline.store.dynamodb.sessions import DynamoDbSessionOptions, DynamoDbSessionStore

__all__ = [
    "CONNECTIONS",
    "RESPONSES",
    "SESSIONS",
    "DynamoDbConnectionOptions",
    "DynamoDbConnectionStore",
    "DynamoDbProvisioner",
    "DynamoDbResponseOptions",
    "DynamoDbResponseStore",
    "DynamoDbSessionOptions",
    "DynamoDbSessionStore",
    "TableSchema",
    "create_table",
    "open_connection_store",
    "open_provisioner",
    "open_response_store",
    "open_session_store",
]
