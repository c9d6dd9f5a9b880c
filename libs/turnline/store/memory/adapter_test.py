"""The registry opens the in-process stores with what the settings say."""

from collections.abc import Mapping
from typing import Any

from turnline.config import Settings
from turnline.protocol import ReplyKey, SessionKey
from turnline.store import Connection
from turnline.store.memory import (
    MemoryConnectionStore,
    MemoryResponseStore,
    MemorySessionStore,
)
from turnline.store.registry import open_stores
from turnline.testing import FakeClock
from turnline.testing.conformance.stores.ledger_rig import KEY, look, run_turn
from turnline.testing.conformance.stores.reply_rig import reply


def _settings(changes: Mapping[str, Any]) -> Settings:
    return Settings.model_validate(changes)


async def test_the_stores_are_in_memory_unless_said_otherwise() -> None:
    async with open_stores(Settings(), FakeClock()) as stores:
        kinds = (type(stores.replies), type(stores.sessions), type(stores.connections))

    assert kinds == (MemoryResponseStore, MemorySessionStore, MemoryConnectionStore)


async def test_the_bounds_of_replies_come_from_the_settings() -> None:
    bounds = {"max_replies": 2, "ttl": 5}
    settings = _settings(
        {"execution": {"response_store": {"type": "in_memory", "in_memory": bounds}}}
    )
    clock = FakeClock()
    keys = [ReplyKey("", f"r{number}") for number in range(3)]

    async with open_stores(settings, clock) as stores:
        for key in keys:
            await stores.replies.put(key, reply(request_id=key.request_id))
        kept = [await stores.replies.get(key) is not None for key in keys]
        await clock.advance(6)
        kept += [await stores.replies.get(key) is not None for key in keys]

    assert kept == [False, True, True, False, False, False]


async def test_the_bounds_of_sessions_come_from_the_settings() -> None:
    bounds = {"max_sessions": 1, "ttl": 50}
    settings = _settings({"session": {"max_history_turns": 2, "in_memory": bounds}})

    async with open_stores(settings, FakeClock()) as stores:
        for number in range(3):
            await run_turn(stores.sessions, f"t{number}")
        history = (await look(stores.sessions)).history
        await run_turn(stores.sessions, "t", key=SessionKey("", "another"))
        forgotten = (await look(stores.sessions, key=KEY)).history

    assert [turn.request_id for turn in history] == ["t1", "t2"]
    assert list(forgotten) == []


async def test_connections_expire_as_the_settings_say() -> None:
    clock = FakeClock()
    settings = _settings({"session": {"connection_store": {"ttl": 5}}})

    async with open_stores(settings, clock) as stores:
        await stores.connections.add(Connection(user_id="u", connection_id="c", endpoint="local"))
        await clock.advance(6)
        left = await stores.connections.connections_of("u")

    assert list(left) == []
