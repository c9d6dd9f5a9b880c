"""The registry opens the shared stores with what the settings say."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from turnline.config import Settings
from turnline.errors import ConfigurationError, StoreUnavailableError
from turnline.protocol.clock import SystemClock
from turnline.store import Connection
from turnline.store.registry import open_stores
from turnline.store.valkey import (
    ValkeyConnectionStore,
    ValkeyResponseStore,
    ValkeySessionStore,
)
from turnline.store.valkey.commands import Commands
from turnline.store.valkey.server import open_commands
from turnline.store.valkey.store_rig import at
from turnline.testing.conformance.stores.ledger_rig import look, run_turn
from turnline.testing.conformance.stores.reply_rig import KEY, add, reply
from turnline.testing.servers.valkey import ValkeyServer, running_valkey

_CLOCK = SystemClock()


def _settings(
    kind: str,
    replies: Mapping[str, Any],
    sessions: Mapping[str, Any],
    session: Mapping[str, Any] | None = None,
) -> Settings:
    return Settings.model_validate(
        {
            "execution": {"response_store": {"type": kind, kind: replies}},
            "session": {"type": kind, kind: sessions, **(session or {})},
        }
    )


def _url(server: ValkeyServer, kind: str) -> str:
    return f"{kind}://127.0.0.1:{server.port}"


async def _names(commands: Commands) -> dict[str, float]:
    """Give every name on the server and the seconds it still lives."""
    names = await commands.call("KEYS", "*")
    return {name.decode(): await commands.call("PTTL", name) / 1000 for name in names}


@pytest.mark.parametrize("kind", ["valkey", "redis"])
async def test_each_type_uses_its_own_block(server: ValkeyServer, kind: str) -> None:
    url = _url(server, kind)
    settings = _settings(
        kind,
        {"url": f"{url}/1", "ttl": 50, "prefix": "mine:replies:"},
        {"url": f"{url}/2", "ttl": 70, "prefix": "mine:sessions:"},
        {"connection_store": {"ttl": 90}},
    )
    async with open_stores(settings, _CLOCK) as stores:
        await add(stores.replies, 1, 0, 0)
        await stores.replies.put(KEY, reply(chunks=1))
        await run_turn(stores.sessions, "t1", state={"n": 1})
        await stores.connections.add(Connection(user_id="u", connection_id="c", endpoint="local"))
        kinds = (type(stores.replies), type(stores.sessions), type(stores.connections))
    async with (open_commands(at(server), _CLOCK) as commands,):
        await commands.call("SWAPDB", 0, 1)
        replies = await _names(commands)
        await commands.call("SWAPDB", 0, 2)
        sessions = await _names(commands)
        await commands.call("FLUSHALL")

    assert kinds == (ValkeyResponseStore, ValkeySessionStore, ValkeyConnectionStore)
    assert sorted(replies) == ["mine:replies:{r1}:chunks", "mine:replies:{r1}:reply"]
    assert all(40 < left <= 50 for left in replies.values())
    sockets = sessions.pop("mine:sessions:{user:u}:sockets")
    assert 80 < sockets <= 90
    assert sorted(sessions) == [
        "mine:sessions:{s1}:done",
        "mine:sessions:{s1}:ledger",
        "mine:sessions:{s1}:order",
        "mine:sessions:{s1}:turns",
    ]
    assert all(60 < left <= 70 for left in sessions.values())


async def test_the_history_is_as_long_as_the_settings_say(server: ValkeyServer) -> None:
    block = {"url": server.url}
    settings = _settings("valkey", block, block, {"max_history_turns": 2})
    async with open_stores(settings, _CLOCK) as stores:
        for number in range(4):
            await run_turn(stores.sessions, f"t{number}")
        history = (await look(stores.sessions)).history

    assert [turn.request_id for turn in history] == ["t2", "t3"]


async def test_every_store_is_asked_whether_it_answers() -> None:
    with running_valkey() as server:
        block = {"url": server.url}
        async with open_stores(_settings("valkey", block, block), _CLOCK) as stores:
            checks = stores.checks
            for check in checks.values():
                await check()
            server.kill()
            for check in checks.values():
                with pytest.raises(StoreUnavailableError):
                    await check()

    assert sorted(checks) == ["response_store", "session_store"]


async def test_a_store_in_the_process_has_nothing_to_be_asked() -> None:
    async with open_stores(Settings(), _CLOCK) as stores:
        assert stores.checks == {}


@pytest.mark.parametrize("kind", ["valkey", "redis"])
@pytest.mark.parametrize("place", ["execution.response_store", "session"])
async def test_a_fault_names_the_setting(server: ValkeyServer, kind: str, place: str) -> None:
    good, bad = {"url": _url(server, kind)}, {"url": f"{_url(server, kind)}?decode=yes"}
    settings = _settings(kind, bad if place != "session" else good, bad)

    with pytest.raises(ConfigurationError) as raised:
        async with open_stores(settings, _CLOCK):
            pass

    assert raised.value.faults[0].startswith(f"{place}.{kind}.url: ")


async def test_what_happens_in_the_process_comes_out_as_it_is(server: ValkeyServer) -> None:
    block = {"url": server.url}
    with pytest.raises(ZeroDivisionError):
        async with open_stores(_settings("valkey", block, block), _CLOCK):
            raise ZeroDivisionError


async def test_a_cancelled_process_ends_cancelled(server: ValkeyServer) -> None:
    block = {"url": server.url}

    async def process() -> None:
        async with open_stores(_settings("valkey", block, block), _CLOCK):
            opened.set()
            await asyncio.Event().wait()

    opened = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(process())
        await opened.wait()
        running.cancel()
        await asyncio.wait([running], timeout=5)

    assert running.cancelled()
