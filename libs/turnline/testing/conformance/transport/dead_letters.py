"""Cases: what was given up can be listed, shown, redriven and purged."""

from collections.abc import Sequence

import pytest

from turnline.errors import NotFoundError, QueueFullError, UndecodableError
from turnline.protocol.codec import decode
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.conformance.transport.harness import Bounds
from turnline.testing.conformance.transport.rig import Rig, RigMaker
from turnline.testing.conformance.transport.topic import Topic
from turnline.transport import DeadLetter


async def _bury(r: Rig, *names: str) -> None:
    """Send and give up turns, each in a session of its own name, in that order."""
    for name in names:
        await r.send(name, name)
        await (await r.receive()).dead_letter(f"{name} is of no use")


async def _only_letter(r: Rig) -> DeadLetter:
    (letter,) = await r.queue.dead_letters.list()
    return letter


def _names(letters: Sequence[DeadLetter]) -> list[str]:
    return [letter.envelope.request_id if letter.envelope else "" for letter in letters]


class DeadLetterCases(Topic):
    """The dead-letter place of a queue."""

    async def test_there_are_none_at_first(self, rig: RigMaker) -> None:
        async with rig() as r:
            assert list(await r.queue.dead_letters.list()) == []

    async def test_a_dead_letter_says_what_and_why(self, rig: RigMaker) -> None:
        async with rig() as r:
            await _bury(r, "turn")
            letter = await _only_letter(r)
            assert letter.envelope == r.envelope("turn", "turn")
            assert letter.reason == "turn is of no use"

    async def test_a_dead_letter_holds_the_bytes_that_were_queued(self, rig: RigMaker) -> None:
        async with rig() as r:
            await _bury(r, "turn")
            assert decode((await _only_letter(r)).raw) == r.envelope("turn", "turn")

    async def test_a_dead_letter_counts_the_attempts_spent(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            await (await r.receive()).retry(0.0)
            await (await r.receive()).retry(0.0)
            await (await r.receive()).dead_letter("three times is enough")
            assert (await _only_letter(r)).attempt == 3

    async def test_a_dead_letter_knows_when_it_was_given_up(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.time.pass_seconds(1.0)
            before = r.time.now()
            await _bury(r, "turn")
            assert before - 0.5 <= (await _only_letter(r)).at <= r.time.now() + 0.5

    async def test_show_gives_what_list_gave(self, rig: RigMaker) -> None:
        async with rig() as r:
            await _bury(r, "first", "second")
            for letter in await r.queue.dead_letters.list():
                assert await r.queue.dead_letters.show(letter.id) == letter

    async def test_the_oldest_is_listed_first(self, rig: RigMaker) -> None:
        names = [f"turn-{number}" for number in range(12)]
        async with rig() as r:
            await _bury(r, *names)
            assert _names(await r.queue.dead_letters.list()) == names

    async def test_a_list_can_be_read_in_pages(self, rig: RigMaker) -> None:
        names = [f"turn-{number}" for number in range(7)]
        async with rig() as r:
            await _bury(r, *names)
            pages: list[list[str]] = []
            after = ""
            while page := await r.queue.dead_letters.list(limit=3, after=after):
                pages.append(_names(page))
                after = page[-1].id
            assert pages == [names[:3], names[3:6], names[6:]]

    @pytest.mark.parametrize("action", ["show", "redrive", "purge"])
    async def test_an_unknown_id_is_not_found(self, rig: RigMaker, action: str) -> None:
        async with rig() as r:
            await _bury(r, "turn")
            gone = (await _only_letter(r)).id
            assert await r.queue.dead_letters.purge(gone) == 1
            for unknown in (gone, "no-such-letter"):
                with pytest.raises(NotFoundError):
                    await getattr(r.queue.dead_letters, action)(unknown)

    async def test_a_redriven_turn_starts_as_if_never_tried(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            await (await r.receive()).retry(0.0)
            await (await r.receive()).dead_letter("no use")
            await r.queue.dead_letters.redrive((await _only_letter(r)).id)
            delivery = await r.receive()
            assert (delivery.envelope.request_id, delivery.attempt) == ("turn", 1)

    async def test_a_redriven_turn_is_no_dead_letter_any_more(self, rig: RigMaker) -> None:
        async with rig() as r:
            await _bury(r, "first", "second")
            first, second = await r.queue.dead_letters.list()
            await r.queue.dead_letters.redrive(first.id)
            assert [letter.id for letter in await r.queue.dead_letters.list()] == [second.id]

    async def test_a_redriven_turn_is_acked_like_any_other(self, rig: RigMaker) -> None:
        async with rig() as r:
            await _bury(r, "turn")
            await r.queue.dead_letters.redrive((await _only_letter(r)).id)
            assert await r.take(1) == ["turn"]
            await r.expire_leases()
            await r.expect_nothing()

    async def test_a_redriven_turn_can_be_given_up_again(self, rig: RigMaker) -> None:
        async with rig() as r:
            await _bury(r, "turn")
            await r.queue.dead_letters.redrive((await _only_letter(r)).id)
            await (await r.receive()).dead_letter("still no use")
            letter = await _only_letter(r)
            assert (letter.reason, letter.attempt) == ("still no use", 1)

    async def test_a_redriven_turn_goes_to_the_end_of_its_session(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "first", "second", "third")
            await (await r.receive()).dead_letter("no use")
            await r.queue.dead_letters.redrive((await _only_letter(r)).id)
            assert await r.take(3) == ["second", "third", "first"]

    async def test_a_redriven_request_has_its_whole_deadline_again(
        self, input_rig: RigMaker
    ) -> None:
        async with input_rig() as r:
            await r.time.pass_seconds(2.0)
            await _bury(r, "turn")
            await r.queue.dead_letters.redrive((await _only_letter(r)).id)
            envelope = (await r.receive()).envelope
            asked = request("turn", "turn")
            assert envelope.enqueued_at == pytest.approx(r.time.now(), abs=5.0)
            assert envelope.deadline - envelope.enqueued_at == pytest.approx(
                asked.deadline - asked.enqueued_at
            )

    async def test_a_redriven_answer_is_unchanged(self, output_rig: RigMaker) -> None:
        async with output_rig() as r:
            await _bury(r, "turn")
            await r.queue.dead_letters.redrive((await _only_letter(r)).id)
            assert (await r.receive()).envelope == r.envelope("turn", "turn")

    async def test_what_is_no_envelope_cannot_be_redriven(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.inject(b"\xff\xfe no envelope")
            await r.expect_nothing()
            letter = await _only_letter(r)
            with pytest.raises(UndecodableError):
                await r.queue.dead_letters.redrive(letter.id)
            assert await _only_letter(r) == letter

    async def test_without_room_a_redriven_turn_stays_a_dead_letter(self, rig: RigMaker) -> None:
        async with rig(Bounds(max_messages=2)) as r:
            await _bury(r, "turn")
            await r.send("session", "first", "second")
            letter = await _only_letter(r)
            with pytest.raises(QueueFullError):
                await r.queue.dead_letters.redrive(letter.id)
            assert await _only_letter(r) == letter

    async def test_one_can_be_purged(self, rig: RigMaker) -> None:
        async with rig() as r:
            await _bury(r, "first", "second", "third")
            _, second, _ = await r.queue.dead_letters.list()
            assert await r.queue.dead_letters.purge(second.id) == 1
            assert _names(await r.queue.dead_letters.list()) == ["first", "third"]

    async def test_all_can_be_purged(self, rig: RigMaker) -> None:
        async with rig() as r:
            await _bury(r, "first", "second", "third")
            assert await r.queue.dead_letters.purge() == 3
            assert list(await r.queue.dead_letters.list()) == []
            assert await r.queue.dead_letters.purge() == 0

    async def test_purging_touches_no_live_envelope(self, rig: RigMaker) -> None:
        async with rig() as r:
            await _bury(r, "dead")
            await r.send("alive", "alive")
            await r.queue.dead_letters.purge()
            assert await r.take(1) == ["alive"]

    async def test_the_oldest_gives_way_when_there_are_too_many(self, rig: RigMaker) -> None:
        async with rig(Bounds(max_dead_letters=3)) as r:
            await _bury(r, "first", "second", "third", "fourth", "fifth")
            assert _names(await r.queue.dead_letters.list()) == ["third", "fourth", "fifth"]

    async def test_input_and_output_have_their_own(self, input_rig: RigMaker) -> None:
        async with input_rig() as r:
            await _bury(r, "turn")
            assert list(await r.transport.output.dead_letters.list()) == []
            assert len(await r.transport.input.dead_letters.list()) == 1
