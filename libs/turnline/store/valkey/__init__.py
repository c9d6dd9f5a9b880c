"""Stores on a Valkey or Redis server, shared by any number of processes."""

from turnline.store.valkey.adapter import (
    open_bookkeeping,
    open_connection_store,
    open_response_store,
    open_session_store,
)
from turnline.store.valkey.bookkeeping import ValkeyBookkeeping, ValkeyBookkeepingOptions
from turnline.store.valkey.connections import ValkeyConnectionOptions, ValkeyConnectionStore
from turnline.store.valkey.replies import ValkeyResponseOptions, ValkeyResponseStore
from turnline.store.valkey.sessions import ValkeySessionOptions, ValkeySessionStore

__all__ = [
    "ValkeyBookkeeping",
    "ValkeyBookkeepingOptions",
    "ValkeyConnectionOptions",
    "ValkeyConnectionStore",
    "ValkeyResponseOptions",
    "ValkeyResponseStore",
    "ValkeySessionOptions",
    "ValkeySessionStore",
    "open_bookkeeping",
    "open_connection_store",
    "open_response_store",
    "open_session_store",
]
