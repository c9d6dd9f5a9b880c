"""The shared books meet the suite, expire by themselves, and are opened by the settings."""

import itertools
from collections.abc import AsyncIterator

import pytest

from turnline.config import Settings
from turnline.errors import StoreUnavailableError
from turnline.protocol.clock import SystemClock
from turnline.store.registry import open_bookkeeping
from turnline.store.valkey.bookkeeping import ValkeyBookkeeping, ValkeyBookkeepingOptions
from turnline.store.valkey.server import open_commands
from turnline.store.valkey.store_rig import RealTime, at, names_without_expiry
from turnline.testing.conformance.bookkeeping import BookkeepingConformance, BookkeepingDesk
from turnline.testing.servers.valkey import ValkeyServer, running_valkey
from turnline.transport import Bookkeeping

_numbers = itertools.count()
CLOCK = SystemClock()


async def _pass(seconds: float) -> None:
    time = RealTime()
    await time.pass_ticks(seconds / time.tick)


class TestValkeyBookkeeping(BookkeepingConformance):
    @pytest.fixture
    async def desk(self, server: ValkeyServer) -> AsyncIterator[BookkeepingDesk]:
        options = ValkeyBookkeepingOptions(prefix=f"books{next(_numbers)}:", keep=60.0)
        async with (
            open_commands(at(server), CLOCK) as commands,
            open_commands(at(server), CLOCK) as others,
        ):
            yield BookkeepingDesk(
                books=ValkeyBookkeeping(options, commands),
                other=ValkeyBookkeeping(options, others),
                pass_seconds=_pass,
            )


async def test_nothing_is_kept_for_ever(server: ValkeyServer) -> None:
    async with open_commands(at(server), CLOCK) as commands:
        options = ValkeyBookkeepingOptions(prefix="expiring:", keep=60.0)
        books = ValkeyBookkeeping(options, commands)
        await books.admit("q", "a", "g", patience=5.0, max_messages=9, max_per_group=9)
        await books.sent("q", "a", "g", window=5.0, place=(0, 0))
        await books.begin("q", "r", "a", sent_at=1.0, window=5.0)
        assert await names_without_expiry(commands, "expiring:") == []
        assert len(await commands.call("KEYS", "expiring:*")) == 5


async def test_what_nobody_finished_gives_its_room_back_in_the_end(server: ValkeyServer) -> None:
    async with open_commands(at(server), CLOCK) as commands:
        books = ValkeyBookkeeping(ValkeyBookkeepingOptions(prefix="leaking:", keep=0.3), commands)
        await books.admit("q", "a", "g", patience=5.0, max_messages=1, max_per_group=0)
        await _pass(0.5)
        again = await books.admit("q", "b", "g", patience=5.0, max_messages=1, max_per_group=0)
        assert again == "taken"


@pytest.mark.parametrize("kind", ["valkey", "redis"])
async def test_the_settings_of_sessions_say_where_the_books_are(
    server: ValkeyServer, kind: str
) -> None:
    block = {"url": f"{kind}://127.0.0.1:{server.port}", "prefix": f"{kind}:"}
    settings = Settings.model_validate({"session": {"type": kind, kind: block}})
    async with open_bookkeeping(settings, CLOCK) as books:
        opened: Bookkeeping = books
        assert await opened.begin("q", "r", "", sent_at=1.0, window=1.0) == 1
    async with open_commands(at(server), CLOCK) as commands:
        assert await commands.call("GET", f"{kind}:{{queue:q}}:tries:r") == b"1"


async def test_sessions_of_one_process_bring_no_books() -> None:
    async with open_bookkeeping(Settings(), CLOCK) as books:
        assert books is None


async def test_books_that_are_away_say_so() -> None:
    with running_valkey() as server:
        async with open_commands(at(server, deadline=0.5), CLOCK) as commands:
            options = ValkeyBookkeepingOptions(prefix="gone:", keep=60.0)
            server.kill()
            with pytest.raises(StoreUnavailableError):
                await ValkeyBookkeeping(options, commands).unspend("q", "r")
