"""Cases: readers share a queue, hold nothing they did not ask for, and may leave at any time."""

import asyncio

from turnline.testing.conformance.transport.harness import Bounds
from turnline.testing.conformance.transport.rig import RigMaker, waiting
from turnline.testing.conformance.transport.topic import Topic


class ConsumerCases(Topic):
    """Several readers, readers that give up, readers that leave."""

    async def test_an_idle_reader_holds_nothing(self, rig: RigMaker) -> None:
        async with rig() as r, r.queue.consumer() as second:
            for number in range(6):
                await r.send(f"session-{number}", f"turn-{number}")
            await r.time.calm()
            got = [await r.receive(second) for _ in range(6)]
            assert {delivery.attempt for delivery in got} == {1}

    async def test_a_busy_reader_holds_nothing_more(self, rig: RigMaker) -> None:
        async with rig() as r, r.queue.consumer() as second:
            await r.send("session-0", "turn-0")
            await r.receive()
            for number in range(1, 6):
                await r.send(f"session-{number}", f"turn-{number}")
            got = [await r.receive(second) for _ in range(5)]
            assert len({delivery.envelope.request_id for delivery in got}) == 5

    async def test_readers_that_wait_are_all_served(self, rig: RigMaker) -> None:
        async with rig() as r, r.queue.consumer() as second:
            async with waiting(r.reader) as one, waiting(second) as other:
                await r.time.calm()
                await r.send("session-1", "turn-1")
                await r.send("session-2", "turn-2")
                got = {(await r.soon(task)).envelope.request_id for task in (one, other)}
            assert got == {"turn-1", "turn-2"}

    async def test_one_envelope_goes_to_one_reader(self, rig: RigMaker) -> None:
        async with (
            rig() as r,
            r.queue.consumer() as second,
            waiting(r.reader) as a,
            waiting(second) as b,
            waiting(second) as c,
        ):
            await r.time.calm()
            await r.send("session", "turn")
            await r.time.calm()
            assert sum(task.done() for task in (a, b, c)) == 1

    async def test_several_waits_of_one_reader_are_all_served(self, rig: RigMaker) -> None:
        async with rig() as r, waiting(r.reader) as one, waiting(r.reader) as other:
            await r.time.calm()
            await r.send("session-1", "turn-1")
            await r.send("session-2", "turn-2")
            got = {(await r.soon(task)).envelope.request_id for task in (one, other)}
            assert got == {"turn-1", "turn-2"}

    async def test_a_cancelled_wait_loses_nothing(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.expect_nothing()
            await r.send("session", "turn")
            delivery = await r.receive()
            assert (delivery.envelope.request_id, delivery.attempt) == ("turn", 1)

    async def test_a_wait_cancelled_as_the_envelope_comes_loses_nothing(
        self, rig: RigMaker
    ) -> None:
        async with rig(Bounds(lease_seconds=30.0)) as r:
            for number in range(20):
                async with waiting(r.reader) as pending:
                    for _ in range(number % 5):
                        await asyncio.sleep(0)
                    await r.send("session", f"turn-{number}")
                    for _ in range(number // 5):
                        await asyncio.sleep(0)
                    pending.cancel()
                delivery = await r.receive() if pending.cancelled() else pending.result()
                assert (delivery.envelope.request_id, delivery.attempt) == (f"turn-{number}", 1)
                await delivery.ack()
            await r.expect_nothing()

    async def test_what_a_cancelled_wait_was_due_goes_to_the_next_in_line(
        self, rig: RigMaker
    ) -> None:
        async with rig(Bounds(lease_seconds=30.0)) as r, r.queue.consumer() as second:
            for number in range(10):
                async with waiting(r.reader) as first, waiting(second) as other:
                    await r.time.calm()
                    await r.send("session", f"turn-{number}")
                    first.cancel()
                    await asyncio.wait([first])
                    delivery = await r.soon(other if first.cancelled() else first)
                    assert delivery.attempt == 1
                    await delivery.ack()

    async def test_short_waits_in_a_row_find_everything(self, rig: RigMaker) -> None:
        names = [f"turn-{number}" for number in range(10)]
        async with rig(Bounds(lease_seconds=30.0)) as r:
            found = []
            for name in names:
                await r.expect_nothing()
                await r.send("session", name)
                delivery = await r.receive()
                found.append((delivery.envelope.request_id, delivery.attempt))
                await delivery.ack()
            assert found == [(name, 1) for name in names]

    async def test_a_reader_that_left_takes_nothing(self, rig: RigMaker) -> None:
        async with rig() as r:
            async with r.queue.consumer() as leaver:
                await r.expect_nothing(leaver)
            await r.send("session", "turn")
            await r.time.calm()
            assert (await r.receive()).attempt == 1

    async def test_what_a_reader_took_can_be_settled_after_it_left(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "first", "second")
            async with r.queue.consumer() as leaver:
                delivery = await r.receive(leaver)
            await delivery.renew()
            await delivery.ack()
            assert await r.take(1) == ["second"]

    async def test_a_reader_that_leaves_keeps_what_it_took_under_lease(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            async with r.queue.consumer() as leaver:
                await r.harness.crash(await r.receive(leaver))
            await r.expect_nothing()
            await r.expire_leases()
            assert (await r.receive()).attempt == 2

    async def test_a_new_reader_goes_on_where_the_last_one_stopped(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "first", "second", "third")
            for name in ("first", "second", "third"):
                async with r.queue.consumer() as reader:
                    delivery = await r.receive(reader)
                    assert delivery.envelope.request_id == name
                    await delivery.ack()

    async def test_many_readers_drain_many_sessions_once(self, rig: RigMaker) -> None:
        taken: list[str] = []

        async def read(count: int) -> None:
            async with r.queue.consumer() as reader:
                for _ in range(count):
                    delivery = await r.receive(reader)
                    taken.append(delivery.envelope.request_id)
                    await delivery.ack()

        async with rig(Bounds(lease_seconds=30.0)) as r:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(10):
                    tasks.create_task(read(8))
                for number in range(80):
                    await r.send(f"session-{number % 20}", f"turn-{number}")
            assert sorted(taken) == sorted(f"turn-{number}" for number in range(80))
            await r.expect_nothing()
