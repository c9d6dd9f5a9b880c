"""The same on another emulator, whose conditional writes are atomic without help of ours.

dynalite has no transactions and no TTL API, so a turn is committed nowhere here: claims, leases,
admissions, ends and chunks (which one item each can hold) are what is checked.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context

import pytest

from turnline.protocol import ReplyKey
from turnline.protocol.clock import SystemClock
from turnline.store import Busy, New, Opened
from turnline.store.dynamodb import (
    RESPONSES,
    SESSIONS,
    DynamoDbResponseOptions,
    DynamoDbResponseStore,
    DynamoDbSessionOptions,
    DynamoDbSessionStore,
    TableSchema,
)
from turnline.store.dynamodb.race_rig import Race, race
from turnline.store.dynamodb.schema import table_request
from turnline.store.dynamodb.store_rig import new_name, open_table
from turnline.store.dynamodb.table import Table
from turnline.testing.conformance.stores.ledger_rig import KEY, LONG, kinds
from turnline.testing.conformance.stores.reply_rig import SESSION, failed, reply
from turnline.testing.servers.dynamodb import DynamoDbServer, running_dynalite

_CLOCK = SystemClock()
_RUNNERS = 3
_SECONDS = 4.0


@pytest.fixture(scope="module")
def dynalite() -> Iterator[DynamoDbServer]:
    with running_dynalite() as server:
        yield server


async def _tables(dynalite: DynamoDbServer, schema: TableSchema) -> AsyncIterator[Table]:
    name = new_name()
    async with open_table(dynalite.url, name, schema, _CLOCK) as table:
        await table.client.create_table(**table_request(name, schema))
        await table.client.get_waiter("table_exists").wait(TableName=name)
        yield table


@pytest.fixture
async def sessions(dynalite: DynamoDbServer) -> AsyncIterator[Table]:
    async for table in _tables(dynalite, SESSIONS):
        yield table


@pytest.fixture
async def responses(dynalite: DynamoDbServer) -> AsyncIterator[Table]:
    async for table in _tables(dynalite, RESPONSES):
        yield table


async def test_of_many_who_want_a_session_one_gets_it(sessions: Table) -> None:
    stores = [DynamoDbSessionStore(DynamoDbSessionOptions(ttl=60), sessions) for _ in range(2)]

    begun = await asyncio.gather(
        *(each.begin_turn(KEY, f"t{at}", lease=LONG) for at, each in enumerate(stores * 10))
    )

    assert kinds(begun) == {"new": 1, "done": 0, "busy": 19}
    (won,) = [each for each in begun if isinstance(each, New)]
    await stores[1].renew_turn(won.claim, lease=LONG)
    await stores[1].abandon_turn(won.claim)
    assert not isinstance(await stores[0].begin_turn(KEY, "t", lease=LONG), Busy)


async def test_of_many_who_open_a_turn_one_is_told_that_it_is_new(responses: Table) -> None:
    stores = [DynamoDbResponseStore(DynamoDbResponseOptions(ttl=60), responses) for _ in range(2)]

    for number in range(10):
        key = ReplyKey("", f"r{number}")
        opened = await asyncio.gather(
            *(each.open(key, session_id=SESSION, fingerprint="f") for each in stores * 5)
        )
        assert sorted(opened) == [Opened.KNOWN] * 9 + [Opened.NEW]


async def test_of_many_ends_put_at_once_one_stays(responses: Table) -> None:
    store = DynamoDbResponseStore(DynamoDbResponseOptions(ttl=60), responses)
    key = ReplyKey("", "r")
    ends = [reply(f"{number}") for number in range(10)]

    await asyncio.gather(*(store.put(key, end) for end in [failed(), *ends, failed()]))
    first = await store.get(key)
    await asyncio.gather(*(store.put(key, end) for end in ends))

    assert first in ends
    assert await store.wait(key, 1) == first


async def test_no_two_processes_hold_a_session_at_once(
    dynalite: DynamoDbServer, sessions: Table
) -> None:
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(_RUNNERS, mp_context=get_context("spawn")) as pool:
        races = [
            Race(dynalite.url, sessions.name, seed, _SECONDS, commits=False)
            for seed in range(_RUNNERS)
        ]
        raced = await asyncio.gather(*(loop.run_in_executor(pool, race, each) for each in races))
    claims = sorted((claim for each in raced for claim in each), key=lambda claim: claim.fence)
    ended = [claim for claim in claims if claim.ended is not None]

    assert len(ended) > 30
    assert all(each for each in raced)
    assert len({claim.fence for claim in claims}) == len(claims)
    for earlier, later in pairwise(ended):
        assert earlier.ended is not None
        assert earlier.ended < later.begun
