"""Runners in several processes want one session: one at a time has it, and each turn ends once."""

import asyncio
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context

from turnline.store.valkey.race_rig import KEY, OPTIONS, race
from turnline.store.valkey.store_rig import at, open_sessions
from turnline.testing.conformance.stores.ledger_rig import look, told
from turnline.testing.servers.valkey import ValkeyServer

_RUNNERS = 3
_SECONDS = 2.0


async def test_no_two_processes_hold_a_session_at_once(server: ValkeyServer) -> None:
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(_RUNNERS, mp_context=get_context("spawn")) as pool:
        raced = await asyncio.gather(
            *(
                loop.run_in_executor(pool, race, server.url, seed, _SECONDS)
                for seed in range(_RUNNERS)
            )
        )
    claims = sorted((claim for each in raced for claim in each), key=lambda claim: claim.fence)
    committed = [claim for claim in claims if claim.ended is not None]
    async with open_sessions(at(server), OPTIONS) as store:
        history = told(await look(store, key=KEY))

    assert len(committed) > 50
    assert all(each for each in raced)
    assert len({claim.fence for claim in claims}) == len(claims)
    # In the order of their fences, and nobody began before the one before had ended.
    for earlier, later in pairwise(committed):
        assert earlier.ended is not None
        assert earlier.ended < later.begun
    assert [turn for turn, _ in history] == [claim.turn for claim in committed][-1000:]
