"""Runners in several processes want one session: one at a time has it, and each turn ends once."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context

import pytest

from turnline.protocol.clock import SystemClock
from turnline.store.dynamodb import SESSIONS, DynamoDbSessionStore, create_table
from turnline.store.dynamodb.race_rig import KEY, OPTIONS, Held, Race, race
from turnline.store.dynamodb.store_rig import MovedClock, new_name, open_table
from turnline.testing.conformance.stores.ledger_rig import look, told
from turnline.testing.servers.dynamodb import DynamoDbServer

_RUNNERS = 3
_SECONDS = 6.0
_CLOCK = SystemClock()


async def _run(
    server: DynamoDbServer, ahead: Sequence[float] = (0.0, 0.0, 0.0)
) -> tuple[list[list[Held]], list[tuple[str, str]]]:
    """Race; gives the claims of each racer, and the history at the end."""
    name, loop = new_name(), asyncio.get_running_loop()
    async with open_table(server.url, name, SESSIONS, _CLOCK) as table:
        await create_table(table.client, name, SESSIONS)
    with ProcessPoolExecutor(_RUNNERS, mp_context=get_context("spawn")) as pool:
        races = [
            Race(server.url, name, seed, _SECONDS, ahead=ahead[seed]) for seed in range(_RUNNERS)
        ]
        raced = await asyncio.gather(*(loop.run_in_executor(pool, race, each) for each in races))
    clock = MovedClock()
    clock.move(60)
    async with open_table(server.url, name, SESSIONS, clock) as table:
        return raced, told(await look(DynamoDbSessionStore(OPTIONS, table), key=KEY))


async def test_no_two_processes_hold_a_session_at_once(server: DynamoDbServer) -> None:
    raced, history = await _run(server)
    claims = sorted((claim for each in raced for claim in each), key=lambda claim: claim.fence)
    ended = [claim for claim in claims if claim.ended is not None]

    assert len(ended) > 20
    assert all(each for each in raced)
    assert len({claim.fence for claim in claims}) == len(claims)
    # In the order of their fences, and nobody began before the one before had ended.
    for earlier, later in pairwise(ended):
        assert earlier.ended is not None
        assert earlier.ended < later.begun
    assert [turn for turn, _ in history] == [claim.turn for claim in ended if claim.committed]


@pytest.mark.parametrize("ahead", [3.0, -3.0])
async def test_a_clock_that_is_off_costs_no_turn_its_single_life(
    server: DynamoDbServer, ahead: float
) -> None:
    raced, history = await _run(server, (0.0, 0.0, ahead))
    claims = sorted((claim for each in raced for claim in each), key=lambda claim: claim.fence)

    assert len({claim.fence for claim in claims}) == len(claims)
    assert [turn for turn, _ in history] == [claim.turn for claim in claims if claim.committed]
