"""Cases: the numbers a queue gives of itself."""

import pytest

from turnline.testing.conformance.transport.harness import Bounds
from turnline.testing.conformance.transport.rig import Rig, RigMaker
from turnline.testing.conformance.transport.topic import Topic


async def _counts(r: Rig) -> tuple[int, int, int]:
    """Give (waiting, in flight, dead)."""
    await r.time.calm()
    stats = await r.queue.stats()
    return stats.waiting, stats.in_flight, stats.dead


class StatsCases(Topic):
    """Waiting, in flight, dead, and the oldest age."""

    async def test_an_empty_queue_counts_nothing(self, rig: RigMaker) -> None:
        async with rig() as r:
            assert await _counts(r) == (0, 0, 0)
            assert (await r.queue.stats()).oldest_age_seconds == 0.0

    async def test_what_waits_is_counted(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session-1", "first", "second")
            await r.send("session-2", "third")
            assert await _counts(r) == (3, 0, 0)

    async def test_what_is_out_is_in_flight(self, rig: RigMaker) -> None:
        async with rig(Bounds(lease_seconds=30.0)) as r:
            await r.send("session-1", "first", "second")
            await r.send("session-2", "third")
            await r.receive_each(2)
            assert await _counts(r) == (1, 2, 0)

    async def test_what_pauses_before_a_retry_waits(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            await (await r.receive()).retry(600.0)
            assert await _counts(r) == (1, 0, 0)

    async def test_what_is_settled_counts_no_more(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            await r.take(1)
            assert await _counts(r) == (0, 0, 0)
            assert (await r.queue.stats()).oldest_age_seconds == 0.0

    async def test_what_was_released_waits_again(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            await (await r.receive()).release()
            assert await _counts(r) == (1, 0, 0)

    async def test_what_was_dropped_waits_again_after_its_lease(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            await r.harness.crash(await r.receive())
            await r.expire_leases()
            assert await _counts(r) == (1, 0, 0)

    async def test_dead_letters_are_counted(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "first", "second")
            await (await r.receive()).dead_letter("no use")
            await (await r.receive()).dead_letter("no use")
            assert await _counts(r) == (0, 0, 2)
            await r.queue.dead_letters.purge()
            assert await _counts(r) == (0, 0, 0)

    async def test_the_oldest_ages(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session-1", "old")
            await r.time.pass_seconds(4.0)
            await r.send("session-2", "young")
            stats = await r.queue.stats()
            assert stats.oldest_age_seconds == pytest.approx(4.0, abs=1.5)

    async def test_what_is_out_ages_too(self, rig: RigMaker) -> None:
        async with rig(Bounds(lease_seconds=30.0)) as r:
            await r.send("session", "turn")
            await r.receive()
            await r.time.pass_seconds(4.0)
            stats = await r.queue.stats()
            assert stats.oldest_age_seconds == pytest.approx(4.0, abs=1.5)

    async def test_when_the_oldest_is_gone_the_next_is_the_oldest(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "old")
            await r.time.pass_seconds(4.0)
            await r.send("session", "young")
            await r.take(1)
            assert (await r.queue.stats()).oldest_age_seconds < 2.0

    async def test_input_and_output_count_apart(self, input_rig: RigMaker) -> None:
        async with input_rig() as r:
            await r.send("session", "turn")
            assert (await r.transport.output.stats()).waiting == 0
            assert (await r.transport.input.stats()).waiting == 1
