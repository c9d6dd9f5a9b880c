"""Cases: what each settlement does, and that there is one per delivery."""

import pytest

from turnline.errors import FencedError
from turnline.testing.conformance.transport.rig import RigMaker, waiting
from turnline.testing.conformance.transport.settlements import SETTLEMENTS, settle
from turnline.testing.conformance.transport.topic import Topic


class SettlingCases(Topic):
    """Ack, retry, release, dead letter."""

    async def test_an_acked_envelope_never_comes_back(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            assert await r.take(1) == ["turn"]
            await r.expire_leases()
            await r.expect_nothing()

    async def test_a_retry_comes_back_as_the_next_attempt(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            await (await r.receive()).retry(0.0)
            assert (await r.receive()).attempt == 2

    async def test_a_retry_waits_its_time(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            await (await r.receive()).retry(3.0)
            await r.time.pass_seconds(1.5)
            await r.expect_nothing()
            await r.time.pass_seconds(2.0)
            assert (await r.receive()).attempt == 2

    async def test_a_reader_that_waits_gets_a_retry_when_its_pause_ends(
        self, rig: RigMaker
    ) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            delivery = await r.receive()
            async with waiting(r.reader) as pending:
                await r.time.calm()
                await delivery.retry(1.0)
                await r.time.pass_seconds(2.0)
                assert (await r.soon(pending)).attempt == 2

    async def test_a_retry_may_wait_longer_than_a_lease(self, input_rig: RigMaker) -> None:
        async with input_rig() as r:
            await r.send("session", "turn")
            await (await r.receive()).retry(r.lease_seconds * 3)
            await r.time.pass_seconds(r.lease_seconds * 2)
            await r.expect_nothing()
            await r.time.pass_seconds(r.lease_seconds * 1.5)
            assert (await r.receive()).attempt == 2

    async def test_a_later_retry_with_a_shorter_pause_comes_first(
        self, input_rig: RigMaker
    ) -> None:
        async with input_rig() as r:
            await r.send("long", "long")
            await r.send("short", "short")
            out = await r.receive_each(2)
            await out["long"].retry(6.0)
            await out["short"].retry(1.0)
            await r.time.pass_seconds(2.0)
            assert await r.take(1) == ["short"]
            await r.expect_nothing()
            await r.time.pass_seconds(5.0)
            assert await r.take(1) == ["long"]

    async def test_attempts_grow_with_every_retry(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            for attempt in (1, 2, 3, 4, 5):
                delivery = await r.receive()
                assert delivery.attempt == attempt
                await delivery.retry(0.0)

    async def test_a_release_comes_back_at_once_as_the_same_attempt(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            for _ in range(3):
                delivery = await r.receive()
                assert delivery.attempt == 1
                await delivery.release()

    async def test_a_release_keeps_the_attempts_spent_before(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            await (await r.receive()).retry(0.0)
            await (await r.receive()).release()
            delivery = await r.receive()
            assert delivery.attempt == 2
            await delivery.retry(0.0)
            assert (await r.receive()).attempt == 3

    async def test_a_released_delivery_may_go_to_another_reader(self, rig: RigMaker) -> None:
        async with rig() as r, r.queue.consumer() as second:
            await r.send("session", "turn")
            await (await r.receive()).release()
            assert (await r.receive(second)).attempt == 1

    async def test_a_crash_after_a_release_spends_one_attempt(self, input_rig: RigMaker) -> None:
        async with input_rig() as r:
            await r.send("session", "turn")
            await (await r.receive()).release()
            await r.harness.crash(await r.receive())
            await r.expire_leases()
            assert (await r.receive()).attempt == 2

    async def test_a_dead_lettered_envelope_never_comes_back(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            await (await r.receive()).dead_letter("no use")
            await r.expire_leases()
            await r.expect_nothing()

    @pytest.mark.parametrize("second", SETTLEMENTS)
    @pytest.mark.parametrize("first", SETTLEMENTS)
    async def test_a_delivery_is_settled_once(
        self, input_rig: RigMaker, first: str, second: str
    ) -> None:
        async with input_rig() as r:
            await r.send("session", "turn")
            delivery = await r.receive()
            await settle(delivery, first)
            with pytest.raises(FencedError):
                await settle(delivery, second)

    @pytest.mark.parametrize("second", SETTLEMENTS)
    async def test_a_second_settlement_changes_nothing(self, rig: RigMaker, second: str) -> None:
        async with rig() as r:
            await r.send("session", "turn", "next")
            delivery = await r.receive()
            await delivery.retry(0.0)
            with pytest.raises(FencedError):
                await settle(delivery, second)
            again = await r.receive()
            assert (again.envelope.request_id, again.attempt) == ("turn", 2)
            assert list(await r.queue.dead_letters.list()) == []

    @pytest.mark.parametrize("settlement", SETTLEMENTS)
    async def test_a_settled_delivery_cannot_be_renewed(
        self, input_rig: RigMaker, settlement: str
    ) -> None:
        async with input_rig() as r:
            await r.send("session", "turn")
            delivery = await r.receive()
            await settle(delivery, settlement)
            with pytest.raises(FencedError):
                await delivery.renew()

    @pytest.mark.parametrize("settlement", SETTLEMENTS)
    async def test_settling_one_session_leaves_the_others_alone(
        self, input_rig: RigMaker, settlement: str
    ) -> None:
        async with input_rig() as r:
            await r.send("one", "one")
            await r.send("other", "other")
            out = await r.receive_each(2)
            await settle(out["one"], settlement)
            await out["other"].renew()
            await out["other"].retry(0.0)
            attempts = {"one": 2 if settlement == "retry" else 1, "other": 2}
            for _ in range(2 if settlement in ("retry", "release") else 1):
                delivery = await r.receive()
                assert delivery.attempt == attempts[delivery.envelope.request_id]

    async def test_settling_works_up_to_the_end_of_the_lease(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            delivery = await r.receive()
            await r.time.pass_seconds(r.lease_seconds * 0.6)
            await delivery.ack()
            await r.expire_leases()
            await r.expect_nothing()
