"""Cases: a delivery is held under a lease; what is not settled in time comes back."""

import pytest

from turnline.errors import FencedError
from turnline.testing.conformance.transport.rig import RigMaker, waiting
from turnline.testing.conformance.transport.settlements import SETTLEMENTS, settle
from turnline.testing.conformance.transport.topic import Topic


class LeaseCases(Topic):
    """Running out, renewing, and what a holder may do afterwards."""

    async def test_an_unsettled_delivery_comes_back_as_the_next_attempt(
        self, rig: RigMaker
    ) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            await r.harness.crash(await r.receive())
            await r.expire_leases()
            again = await r.receive()
            assert (again.envelope.request_id, again.attempt) == ("turn", 2)

    async def test_the_envelope_comes_back_unchanged(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            first = await r.receive()
            await r.harness.crash(first)
            await r.expire_leases()
            assert (await r.receive()).envelope == first.envelope

    async def test_it_does_not_come_back_before_the_lease_ran_out(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            await r.harness.crash(await r.receive())
            await r.time.pass_seconds(r.lease_seconds * 0.4)
            await r.expect_nothing()

    async def test_each_lease_that_runs_out_spends_an_attempt(self, input_rig: RigMaker) -> None:
        async with input_rig() as r:
            await r.send("session", "turn")
            for attempt in (1, 2, 3, 4):
                delivery = await r.receive()
                assert delivery.attempt == attempt
                await r.harness.crash(delivery)
                await r.expire_leases()

    async def test_a_reader_that_waits_gets_what_another_dropped(self, rig: RigMaker) -> None:
        async with rig() as r, r.queue.consumer() as second:
            await r.send("session", "turn")
            await r.harness.crash(await r.receive())
            async with waiting(second) as pending:
                await r.time.calm()
                assert not pending.done()
                await r.expire_leases()
                assert (await r.soon(pending)).attempt == 2

    async def test_renewing_keeps_a_delivery_beyond_its_lease(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            delivery = await r.receive()
            for _ in range(5):
                await r.time.pass_seconds(r.lease_seconds * 0.5)
                await delivery.renew()
            await r.expect_nothing()
            await delivery.ack()
            await r.expire_leases()
            await r.expect_nothing()

    async def test_a_renewed_lease_runs_out_too(self, input_rig: RigMaker) -> None:
        async with input_rig() as r:
            await r.send("session", "turn")
            delivery = await r.receive()
            await r.time.pass_seconds(r.lease_seconds * 0.5)
            await delivery.renew()
            await r.harness.crash(delivery)
            await r.expire_leases()
            assert (await r.receive()).attempt == 2

    async def test_a_reader_that_waits_gets_what_was_dropped_after_a_renewal(
        self, rig: RigMaker
    ) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            delivery = await r.receive()
            async with waiting(r.reader) as pending:
                await r.time.pass_seconds(r.lease_seconds * 0.5)
                await delivery.renew()
                await r.harness.crash(delivery)
                await r.expire_leases()
                assert (await r.soon(pending)).attempt == 2

    async def test_renewing_spends_no_attempt(self, input_rig: RigMaker) -> None:
        async with input_rig() as r:
            await r.send("session", "turn")
            delivery = await r.receive()
            await delivery.renew()
            await delivery.renew()
            await delivery.retry(0.0)
            assert (await r.receive()).attempt == 2

    async def test_renewing_one_delivery_renews_no_other(self, input_rig: RigMaker) -> None:
        async with input_rig() as r:
            await r.send("kept", "kept")
            await r.send("dropped", "dropped")
            out = await r.receive_each(2)
            await r.harness.crash(out["dropped"])
            for _ in range(3):
                await r.time.pass_seconds(r.lease_seconds * 0.5)
                await out["kept"].renew()
            assert (await r.receive()).envelope.request_id == "dropped"
            await out["kept"].ack()

    async def test_a_lease_that_ran_out_cannot_be_renewed(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            delivery = await r.receive()
            await r.expire_leases()
            await r.receive()
            with pytest.raises(FencedError):
                await delivery.renew()

    @pytest.mark.parametrize("settlement", SETTLEMENTS)
    async def test_a_late_holder_cannot_settle(self, rig: RigMaker, settlement: str) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            late = await r.receive()
            await r.expire_leases()
            await r.receive()
            with pytest.raises(FencedError):
                await settle(late, settlement)

    @pytest.mark.parametrize("settlement", SETTLEMENTS)
    async def test_a_late_settlement_leaves_the_new_holder_alone(
        self, input_rig: RigMaker, settlement: str
    ) -> None:
        async with input_rig() as r:
            await r.send("session", "turn", "next")
            late = await r.receive()
            await r.expire_leases()
            holder = await r.receive()
            with pytest.raises(FencedError):
                await settle(late, settlement)
            await r.expect_nothing()
            assert list(await r.queue.dead_letters.list()) == []
            await holder.ack()
            assert await r.take(1) == ["next"]

    async def test_a_redelivery_has_a_whole_lease(self, input_rig: RigMaker) -> None:
        async with input_rig() as r:
            await r.send("session", "turn")
            await r.harness.crash(await r.receive())
            await r.expire_leases()
            again = await r.receive()
            await r.time.pass_seconds(r.lease_seconds * 0.6)
            await again.ack()
            await r.expire_leases()
            await r.expect_nothing()

    async def test_an_envelope_that_waits_unread_spends_nothing(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "first", "second")
            first = await r.receive()
            for _ in range(6):
                await r.time.pass_seconds(r.lease_seconds * 0.5)
                await first.renew()
            await first.ack()
            assert (await r.receive()).attempt == 1
