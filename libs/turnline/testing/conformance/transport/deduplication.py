"""Cases: an envelope sent again within the dedup window is dropped, and nothing else is."""

import asyncio

from turnline.protocol import ChatRequest
from turnline.testing.conformance.transport.envelopes import answer, chunks, request
from turnline.testing.conformance.transport.harness import Bounds
from turnline.testing.conformance.transport.rig import RigMaker
from turnline.testing.conformance.transport.topic import Topic


class DeduplicationCases(Topic):
    """The dedup window."""

    async def test_a_second_copy_is_refused_and_not_delivered(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            assert await r.queue.send(r.envelope("session", "turn")) is False
            assert await r.take(1) == ["turn"]
            await r.expect_nothing()

    async def test_a_copy_of_one_that_is_out_is_refused(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            delivery = await r.receive()
            assert await r.queue.send(r.envelope("session", "turn")) is False
            await delivery.ack()
            await r.expect_nothing()

    async def test_a_copy_of_one_that_was_acked_is_refused(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            assert await r.take(1) == ["turn"]
            assert await r.queue.send(r.envelope("session", "turn")) is False
            await r.expect_nothing()

    async def test_a_copy_of_a_dead_letter_is_refused(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            await (await r.receive()).dead_letter("no use")
            assert await r.queue.send(r.envelope("session", "turn")) is False
            await r.expect_nothing()

    async def test_after_the_window_a_copy_is_new(self, rig: RigMaker) -> None:
        async with rig(Bounds(dedup_seconds=1.0)) as r:
            await r.send("session", "turn")
            assert await r.take(1) == ["turn"]
            await r.time.pass_seconds(2.0)
            await r.send("session", "turn")
            assert await r.take(1) == ["turn"]

    async def test_a_refused_copy_does_not_stretch_the_window(self, rig: RigMaker) -> None:
        async with rig(Bounds(dedup_seconds=3.0)) as r:
            await r.send("session", "turn")
            await r.time.pass_seconds(1.5)
            assert await r.queue.send(r.envelope("session", "turn")) is False
            await r.time.pass_seconds(2.5)
            assert await r.queue.send(r.envelope("session", "turn")) is True

    async def test_the_first_copy_is_the_one_kept(self, input_rig: RigMaker) -> None:
        async with input_rig() as r:
            assert await r.queue.send(request("session", "turn", prompt="first")) is True
            assert await r.queue.send(request("session", "turn", prompt="second")) is False
            payload = (await r.receive()).envelope.payload
            assert isinstance(payload, ChatRequest)
            assert payload.prompt == "first"

    async def test_a_copy_keeps_its_first_place(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "first", "second")
            assert await r.queue.send(r.envelope("session", "first")) is False
            assert await r.take(2) == ["first", "second"]
            await r.expect_nothing()

    async def test_one_id_in_two_sessions_is_two_turns(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session-1", "turn")
            await r.send("session-2", "turn")
            assert await r.take(2) == ["turn", "turn"]

    async def test_one_id_of_two_users_is_two_turns(self, rig: RigMaker) -> None:
        async with rig() as r:
            for scope in ("ann", "bob", ""):
                assert await r.queue.send(r.envelope("session", "turn", scope=scope)) is True
            assert await r.take(3) == ["turn", "turn", "turn"]

    async def test_input_and_output_remember_apart(self, input_rig: RigMaker) -> None:
        async with input_rig() as r:
            assert await r.queue.send(request("session", "turn")) is True
            assert await r.transport.output.send(answer("session", "turn")) is True

    async def test_a_final_answer_is_one_per_claim(self, output_rig: RigMaker) -> None:
        asked = request("session", "turn")
        final = answer("session", "turn").payload
        assert final is not None and not isinstance(final, ChatRequest)
        async with output_rig() as r:
            for attempt, fence, new in [(1, 1, True), (1, 1, False), (2, 2, True), (1, 3, True)]:
                sent = asked.answer(attempt=attempt, fence=fence, payload=final)
                assert await r.queue.send(sent) is new
            assert await r.take(3) == ["turn"] * 3

    async def test_chunks_are_told_apart_by_their_first_index(self, output_rig: RigMaker) -> None:
        async with output_rig() as r:
            for first, new in [(0, True), (2, True), (0, False), (2, False), (4, True)]:
                assert await r.queue.send(chunks("session", "turn", "a", first=first)) is new
            assert await r.take(3) == ["turn"] * 3

    async def test_of_many_copies_sent_at_once_one_is_taken(self, rig: RigMaker) -> None:
        async with rig() as r:
            copies = [r.queue.send(r.envelope("session", "turn")) for _ in range(20)]
            answers = await asyncio.gather(*copies)
            assert sorted(answers) == [False] * 19 + [True]
            assert await r.take(1) == ["turn"]
            await r.expect_nothing()
