"""Cases: random workloads, judged by an oracle for loss, doubling, reordering and overlap."""

import asyncio

import pytest

from turnline.testing.conformance.transport.harness import Bounds
from turnline.testing.conformance.transport.history import What, find_faults
from turnline.testing.conformance.transport.rig import RigMaker
from turnline.testing.conformance.transport.topic import Topic
from turnline.testing.conformance.transport.workload import Mix, Workload, run_workload

SEEDS = (1, 2, 3)
PATIENT = Bounds(lease_seconds=30.0, dedup_seconds=600.0)
HASTY = Bounds(lease_seconds=3.0, dedup_seconds=600.0)


class ConcurrencyCases(Topic):
    """Many senders and readers at once."""

    @pytest.mark.parametrize("seed", SEEDS)
    async def test_promises_hold_while_readers_settle_at_random(
        self, rig: RigMaker, seed: int
    ) -> None:
        async with rig(PATIENT) as r:
            assert find_faults(await run_workload(r, Workload(seed=seed))) == []
            await r.expect_nothing()

    @pytest.mark.parametrize("seed", SEEDS)
    async def test_promises_hold_while_readers_crash(self, rig: RigMaker, seed: int) -> None:
        load = Workload(seed=seed, sessions=6, turns=4, mix=Mix(crash=2))
        async with rig(HASTY) as r:
            assert find_faults(await run_workload(r, load)) == []
            await r.expect_nothing()

    @pytest.mark.parametrize("seed", SEEDS)
    async def test_promises_hold_while_readers_give_up_waiting(
        self, rig: RigMaker, seed: int
    ) -> None:
        load = Workload(seed=seed, sessions=4, turns=10, mix=Mix(bury=0), give_up=6)
        async with rig(PATIENT) as r:
            assert find_faults(await run_workload(r, load)) == []
            await r.expect_nothing()

    async def test_promises_hold_for_one_session_with_many_readers(self, rig: RigMaker) -> None:
        load = Workload(seed=4, sessions=1, turns=40, readers=10)
        async with rig(PATIENT) as r:
            assert find_faults(await run_workload(r, load)) == []

    async def test_promises_hold_for_many_sessions_with_one_reader(self, rig: RigMaker) -> None:
        load = Workload(seed=5, sessions=40, turns=2, readers=1)
        async with rig(PATIENT) as r:
            assert find_faults(await run_workload(r, load)) == []

    async def test_promises_hold_while_everything_is_sent_three_times(self, rig: RigMaker) -> None:
        async with rig(PATIENT) as r:
            assert find_faults(await run_workload(r, Workload(seed=6, copies=3))) == []
            await r.expect_nothing()

    async def test_the_dead_letters_are_what_was_buried(self, rig: RigMaker) -> None:
        load = Workload(seed=7, mix=Mix(bury=4))
        async with rig(PATIENT) as r:
            events = await run_workload(r, load)
            buried = sorted(event.request_id for event in events if event.what is What.BURIED)
            letters = await r.queue.dead_letters.list(limit=1000)
            assert buried == sorted(x.envelope.request_id for x in letters if x.envelope)

    async def test_senders_of_one_session_lose_nothing_to_each_other(self, rig: RigMaker) -> None:
        async with rig(PATIENT) as r:
            names = [f"turn-{number}" for number in range(60)]
            async with asyncio.TaskGroup() as tasks:
                for name in names:
                    tasks.create_task(r.send("session", name))
            assert sorted(await r.take(60)) == sorted(names)
            await r.expect_nothing()
