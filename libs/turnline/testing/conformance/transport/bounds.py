"""Cases: a full queue refuses and loses nothing; sizes have a limit."""

import pytest

from turnline.errors import Code, PayloadTooLargeError, QueueFullError
from turnline.testing.conformance.transport.envelopes import answer, request
from turnline.testing.conformance.transport.harness import Bounds
from turnline.testing.conformance.transport.rig import Rig, RigMaker
from turnline.testing.conformance.transport.topic import Topic


async def _refused(r: Rig, session_id: str, request_id: str) -> QueueFullError:
    with pytest.raises(QueueFullError) as refusal:
        await r.queue.send(r.envelope(session_id, request_id))
    return refusal.value


class BoundCases(Topic):
    """Room on a queue, a session's share of it, and the largest envelope."""

    async def test_a_full_queue_refuses_and_says_when_to_come_back(self, rig: RigMaker) -> None:
        async with rig(Bounds(max_messages=3)) as r:
            for number in range(3):
                await r.send(f"session-{number}", "turn")
            refusal = await _refused(r, "session-3", "turn")
            assert refusal.code is Code.QUEUE_FULL
            assert refusal.retry_after is not None and refusal.retry_after > 0

    async def test_a_refusal_drops_nothing_that_was_taken(self, rig: RigMaker) -> None:
        async with rig(Bounds(max_messages=3)) as r:
            await r.send("session", "first", "second", "third")
            await _refused(r, "session", "fourth")
            assert await r.take(3) == ["first", "second", "third"]
            await r.expect_nothing()

    async def test_what_is_out_for_delivery_takes_room(self, rig: RigMaker) -> None:
        async with rig(Bounds(max_messages=2)) as r:
            await r.send("session-1", "first")
            await r.send("session-2", "second")
            await r.receive_each(2)
            await _refused(r, "session-3", "third")

    @pytest.mark.parametrize("settlement", ["ack", "dead_letter"])
    async def test_settling_for_good_makes_room(self, rig: RigMaker, settlement: str) -> None:
        async with rig(Bounds(max_messages=1)) as r:
            await r.send("session", "first")
            delivery = await r.receive()
            await (delivery.ack() if settlement == "ack" else delivery.dead_letter("no use"))
            await r.send("session", "second")
            assert await r.take(1) == ["second"]

    @pytest.mark.parametrize("settlement", ["retry", "release"])
    async def test_giving_back_makes_no_room(self, rig: RigMaker, settlement: str) -> None:
        async with rig(Bounds(max_messages=1)) as r:
            await r.send("session", "first")
            delivery = await r.receive()
            await (delivery.release() if settlement == "release" else delivery.retry(0.0))
            await _refused(r, "session", "second")
            assert await r.take(1) == ["first"]

    async def test_a_refused_envelope_is_new_when_there_is_room(self, rig: RigMaker) -> None:
        async with rig(Bounds(max_messages=1)) as r:
            await r.send("session", "first")
            await _refused(r, "session", "second")
            assert await r.take(1) == ["first"]
            await r.send("session", "second")
            assert await r.take(1) == ["second"]

    async def test_a_copy_of_what_a_full_queue_holds_is_a_copy(self, rig: RigMaker) -> None:
        async with rig(Bounds(max_messages=1)) as r:
            await r.send("session", "turn")
            assert await r.queue.send(r.envelope("session", "turn")) is False

    async def test_a_full_input_leaves_the_output_open(self, input_rig: RigMaker) -> None:
        async with input_rig(Bounds(max_messages=1)) as r:
            await r.send("session", "first")
            await _refused(r, "session", "second")
            assert await r.transport.output.send(answer("session", "first")) is True

    async def test_a_session_has_a_share_of_the_input(self, input_rig: RigMaker) -> None:
        async with input_rig(Bounds(max_per_session=2)) as r:
            await r.send("session", "first", "second")
            refusal = await _refused(r, "session", "third")
            assert refusal.code is Code.SESSION_QUEUE_FULL
            assert refusal.retry_after is not None and refusal.retry_after > 0

    async def test_one_sessions_share_is_not_anothers(self, input_rig: RigMaker) -> None:
        async with input_rig(Bounds(max_per_session=1)) as r:
            await r.send("session-1", "turn")
            await r.send("session-2", "turn")
            await _refused(r, "session-1", "later")

    async def test_a_sessions_share_is_free_again_after_an_ack(self, input_rig: RigMaker) -> None:
        async with input_rig(Bounds(max_per_session=1)) as r:
            await r.send("session", "first")
            assert await r.take(1) == ["first"]
            await r.send("session", "second")

    async def test_the_output_has_no_shares(self, output_rig: RigMaker) -> None:
        names = [f"turn-{number}" for number in range(10)]
        async with output_rig(Bounds(max_per_session=1)) as r:
            await r.send("session", *names)
            assert await r.take(10) == names

    async def test_an_envelope_over_the_limit_is_refused(self, rig: RigMaker) -> None:
        large = "x" * 70_000
        async with rig(Bounds(max_bytes=65_536)) as r:
            sent = (
                request("session", "large", prompt=large)
                if r.side == "input"
                else answer("session", "large", result=large)
            )
            with pytest.raises(PayloadTooLargeError) as refusal:
                await r.queue.send(sent)
            assert refusal.value.limit_bytes == r.queue.capabilities.max_bytes
            await r.expect_nothing()

    async def test_an_envelope_just_under_the_limit_travels(self, input_rig: RigMaker) -> None:
        async with input_rig(Bounds(max_bytes=65_536)) as r:
            sent = request("session", "large", prompt="x" * 64_000)
            assert await r.queue.send(sent) is True
            assert (await r.receive()).envelope == sent

    async def test_after_a_refusal_for_size_the_session_goes_on(self, input_rig: RigMaker) -> None:
        async with input_rig(Bounds(max_bytes=65_536)) as r:
            with pytest.raises(PayloadTooLargeError):
                await r.queue.send(request("session", "turn", prompt="x" * 70_000))
            assert await r.queue.send(request("session", "turn", prompt="shorter")) is True
            assert await r.take(1) == ["turn"]
