"""Stores in this process: for tests, and for a topology that is one process."""

from turnline.store.memory.adapter import (
    open_connection_store,
    open_response_store,
    open_session_store,
)
from turnline.store.memory.connections import MemoryConnectionOptions, MemoryConnectionStore
from turnline.store.memory.replies import MemoryResponseOptions, MemoryResponseStore
from turnline.store.memory.sessions import MemorySessionOptions, MemorySessionStore

__all__ = [
    "MemoryConnectionOptions",
    "MemoryConnectionStore",
    "MemoryResponseOptions",
    "MemoryResponseStore",
    "MemorySessionOptions",
    "MemorySessionStore",
    "open_connection_store",
    "open_response_store",
    "open_session_store",
]
