"""Cases: one session's envelopes come one at a time, in order; other sessions never wait for it."""

from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.conformance.transport.rig import RigMaker, waiting
from turnline.testing.conformance.transport.topic import Topic


class OrderingCases(Topic):
    """Order within a session, freedom between sessions."""

    async def test_a_sessions_envelopes_come_in_the_order_sent(self, rig: RigMaker) -> None:
        names = [f"turn-{number}" for number in range(20)]
        async with rig() as r:
            await r.send("session", *names)
            assert await r.take(20) == names

    async def test_only_one_delivery_of_a_session_is_out(self, rig: RigMaker) -> None:
        async with rig() as r, r.queue.consumer() as second:
            await r.send("session", "first", "second")
            await r.receive()
            await r.expect_nothing()
            await r.expect_nothing(second)

    async def test_settling_lets_the_next_of_the_session_out(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "first", "second")
            first = await r.receive()
            async with waiting(r.reader) as pending:
                await r.time.calm()
                await first.ack()
                await r.time.calm()
                assert pending.done()
                assert pending.result().envelope.request_id == "second"

    async def test_a_delivery_that_is_out_holds_no_other_session(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("slow", *(f"slow-{number}" for number in range(20)))
            slow = await r.receive()
            assert slow.envelope.request_id == "slow-0"
            await r.send("quick", "quick-0", "quick-1")
            assert await r.take(2) == ["quick-0", "quick-1"]

    async def test_every_session_can_be_out_at_once(self, rig: RigMaker) -> None:
        async with rig() as r:
            for number in range(50):
                await r.send(f"session-{number}", f"turn-{number}", f"later-{number}")
            out = await r.receive_each(50)
            assert set(out) == {f"turn-{number}" for number in range(50)}

    async def test_order_is_kept_over_several_readers(self, rig: RigMaker) -> None:
        names = [f"turn-{number}" for number in range(10)]
        async with rig() as r, r.queue.consumer() as second:
            await r.send("session", *names)
            seen = []
            for number in range(10):
                delivery = await r.receive(second if number % 2 else r.reader)
                seen.append(delivery.envelope.request_id)
                await delivery.ack()
            assert seen == names

    async def test_nothing_overtakes_an_envelope_that_waits_for_its_retry(
        self, rig: RigMaker
    ) -> None:
        async with rig() as r:
            await r.send("session", "first", "second", "third")
            await (await r.receive()).retry(2.0)
            await r.expect_nothing()
            await r.time.pass_seconds(2.5)
            assert await r.take(3) == ["first", "second", "third"]

    async def test_an_envelope_that_waits_for_its_retry_holds_no_other_session(
        self, rig: RigMaker
    ) -> None:
        async with rig() as r:
            await r.send("failing", "failing-0", "failing-1")
            await (await r.receive()).retry(600.0)
            await r.send("sound", "sound-0", "sound-1")
            assert await r.take(2) == ["sound-0", "sound-1"]

    async def test_a_retry_at_once_keeps_its_place(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "first", "second")
            await (await r.receive()).retry(0.0)
            assert await r.take(2) == ["first", "second"]

    async def test_a_release_keeps_its_place(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "first", "second")
            await (await r.receive()).release()
            assert await r.take(2) == ["first", "second"]

    async def test_a_lease_that_ran_out_keeps_its_place(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "first", "second")
            await r.harness.crash(await r.receive())
            await r.expire_leases()
            assert await r.take(2) == ["first", "second"]

    async def test_what_is_sent_during_a_retrys_pause_comes_behind_it(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "first")
            await (await r.receive()).retry(1.0)
            await r.send("session", "second")
            await r.time.pass_seconds(1.5)
            assert await r.take(2) == ["first", "second"]

    async def test_a_dead_letter_makes_way_for_the_next(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "first", "second")
            await (await r.receive()).dead_letter("no use")
            assert await r.take(1) == ["second"]

    async def test_a_session_that_ran_dry_goes_on(self, rig: RigMaker) -> None:
        async with rig() as r:
            for name in ("first", "second", "third"):
                await r.send("session", name)
                assert await r.take(1) == [name]

    async def test_two_users_sessions_of_one_name_are_two(self, input_rig: RigMaker) -> None:
        async with input_rig() as r:
            await r.queue.send(request("session", "mine", scope="ann"))
            await r.queue.send(request("session", "yours", scope="bob"))
            await r.queue.send(request("session", "anyones"))
            assert set(await r.receive_each(3)) == {"mine", "yours", "anyones"}

    async def test_sessions_of_similar_names_are_not_one(self, input_rig: RigMaker) -> None:
        names = ["a", "A", "a ", "a.b", "a_b", "a-b", "a/b", "a~b", "a~0b", "a%2Eb", "aa"]
        async with input_rig() as r:
            for name in names:
                await r.queue.send(request(name, f"turn of {name}"))
            assert len(await r.receive_each(len(names))) == len(names)

    async def test_order_survives_mixed_settlements(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "first", "second", "third", "fourth")
            await (await r.receive()).ack()
            await (await r.receive()).retry(0.0)
            await (await r.receive()).release()
            await (await r.receive()).dead_letter("no use")
            assert await r.take(2) == ["third", "fourth"]
