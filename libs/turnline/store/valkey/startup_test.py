"""Start-up: a server that cannot be used is said so, naming the setting and no secret."""

import asyncio
import time
from collections.abc import Callable

import pytest

from turnline.errors import ConfigurationError
from turnline.protocol.clock import SystemClock
from turnline.store.valkey.server import ServerOptions, open_commands
from turnline.store.valkey.store_rig import at
from turnline.testing.servers.valkey import ValkeyServer, running_valkey

_SECRET = "hunter2-hunter2"


def _options(url: str) -> ServerOptions:
    return ServerOptions(setting="session.valkey.url", url=url, start_within=0.5)


async def _fault(url: str) -> str:
    with pytest.raises(ConfigurationError) as raised:
        async with open_commands(_options(url), SystemClock()):
            pass
    (fault,) = raised.value.faults
    assert fault.startswith("session.valkey.url: ")
    assert _SECRET not in fault
    return fault


async def test_a_server_that_answers_is_used(server: ValkeyServer) -> None:
    async with open_commands(_options(server.url), SystemClock()) as commands:
        assert await commands.call("PING") == b"PONG"


@pytest.mark.parametrize("scheme", ["valkey", "redis"])
async def test_the_password_of_the_url_is_used(scheme: str) -> None:
    with running_valkey("--requirepass", _SECRET) as server:
        url = f"{scheme}://:{_SECRET}@127.0.0.1:{server.port}/2"
        async with open_commands(_options(url), SystemClock()) as commands:
            assert b"db=2" in await commands.call("CLIENT", "INFO")


@pytest.mark.parametrize("login", ["", "wrong:hunter2-hunter2@", ":hunter2-hunter2@"])
async def test_a_wrong_or_missing_password_is_told_at_once(login: str) -> None:
    with running_valkey("--requirepass", "another") as server:
        fault = await _fault(f"valkey://{login}127.0.0.1:{server.port}")

    assert "user and password" in fault


async def test_a_password_where_none_is_asked_for_is_told(server: ValkeyServer) -> None:
    fault = await _fault(f"valkey://someone:{_SECRET}@127.0.0.1:{server.port}")

    assert "user and password" in fault


async def test_nobody_there_is_told_after_a_while() -> None:
    with running_valkey() as gone:
        pass

    fault = await _fault(f"valkey://:{_SECRET}@127.0.0.1:{gone.port}")

    assert "no server answers there" in fault


async def test_a_server_that_comes_up_late_is_waited_for() -> None:
    with running_valkey() as server:
        server.kill()
        opened = open_commands(at(server), SystemClock())
        async with asyncio.TaskGroup() as tasks:
            entering = tasks.create_task(opened.__aenter__())
            await asyncio.wait([entering], timeout=0.2)
            assert not entering.done()
            server.start()
            commands = await entering
        assert await commands.call("PING") == b"PONG"
        await opened.__aexit__(None, None, None)


@pytest.mark.parametrize("scheme", ["valkeys", "rediss"])
async def test_tls_that_the_server_does_not_speak_is_told(
    server: ValkeyServer, scheme: str
) -> None:
    fault = await _fault(f"{scheme}://:{_SECRET}@127.0.0.1:{server.port}")

    assert "valkeys:// or rediss:// if, and only if" in fault


async def test_something_else_at_the_address_is_told() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as other:
        port = other.sockets[0].getsockname()[1]
        fault = await _fault(f"valkey://127.0.0.1:{port}")

    assert "no server answers there" in fault


async def test_a_server_that_hangs_is_told(hanging: Callable[[], ValkeyServer]) -> None:
    began = time.monotonic()

    fault = await _fault(hanging().url)

    assert "no server answers there" in fault
    assert time.monotonic() - began < 3


async def test_a_database_that_is_not_there_is_told(server: ValkeyServer) -> None:
    assert "DB index is out of range" in await _fault(f"{server.url}/99")


@pytest.mark.parametrize("query", ["socket_timeout=60", "retry_on_timeout=yes", "decode=yes"])
async def test_options_that_would_undo_a_promise_are_refused(
    server: ValkeyServer, query: str
) -> None:
    assert query.partition("=")[0] in await _fault(f"{server.url}?{query}")


async def test_a_server_that_evicts_is_refused() -> None:
    with running_valkey("--maxmemory", "100mb", "--maxmemory-policy", "volatile-lru") as server:
        fault = await _fault(server.url)

    assert "volatile-lru" in fault
    assert "set it to noeviction" in fault


async def test_a_server_with_bounded_memory_that_does_not_evict_is_used() -> None:
    with running_valkey("--maxmemory", "100mb", "--maxmemory-policy", "noeviction") as server:
        async with open_commands(_options(server.url), SystemClock()):
            pass


async def test_a_server_that_would_evict_once_bounded_is_warned_of(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with running_valkey("--maxmemory-policy", "allkeys-lru") as server:
        async with open_commands(_options(server.url), SystemClock()):
            pass

    assert "allkeys-lru" in capfd.readouterr().err


async def test_a_server_that_does_not_tell_its_policy_is_warned_of(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with running_valkey() as server:
        async with open_commands(_options(server.url), SystemClock()) as commands:
            await commands.call(
                "ACL", "SETUSER", "app", "on", f">{_SECRET}", "~*", "&*", "+@all", "-info"
            )
        url = f"valkey://app:{_SECRET}@127.0.0.1:{server.port}"
        async with open_commands(_options(url), SystemClock()):
            pass

    assert "could not be read" in capfd.readouterr().err
