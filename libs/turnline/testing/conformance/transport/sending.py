"""Cases: what is sent arrives, whole, on its own queue."""

import pytest

from turnline.errors import RetryHint
from turnline.protocol import ChatReply, ChatRequest, Failure
from turnline.testing.conformance.transport.envelopes import (
    answer,
    chunks,
    full_request,
    request,
)
from turnline.testing.conformance.transport.rig import RigMaker, waiting
from turnline.testing.conformance.transport.topic import Topic

ODD_IDS = [
    "a b",
    "a.b.c",
    "*",
    ">",
    "a/b?c=d&e#f",
    "~",
    "~1user~1session",
    "tilde~0tilde",
    "Sitzung-äöü-会話-🙂",
    "UPPER",
    "-leading-dash",
    "x" * 256,
]
ODD_PROMPTS = [
    "line one\nline two\r\n\ttabbed",
    "emoji 👩‍👩‍👧 and right-to-left שלום",
    '{"looks": "like json"}',
    "back\\slash \"quotes\" 'and' `ticks`",
    "a" * 20_000,
]


class SendingCases(Topic):
    """Sending and receiving one envelope."""

    async def test_a_sent_envelope_is_delivered(self, rig: RigMaker) -> None:
        async with rig() as r:
            sent = r.envelope("session", "turn")
            await r.queue.send(sent)
            assert (await r.receive()).envelope == sent

    async def test_a_new_envelope_is_taken_as_new(self, rig: RigMaker) -> None:
        async with rig() as r:
            assert await r.queue.send(r.envelope("session", "turn")) is True

    async def test_the_first_delivery_is_attempt_one(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            assert (await r.receive()).attempt == 1

    async def test_a_reader_that_waits_gets_what_is_sent_later(self, rig: RigMaker) -> None:
        async with rig() as r, waiting(r.reader) as pending:
            await r.time.calm()
            await r.send("session", "turn")
            await r.time.calm()
            assert pending.done()
            assert pending.result().envelope.request_id == "turn"

    async def test_what_is_sent_before_anyone_reads_is_kept(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "turn")
            await r.time.pass_seconds(r.lease_seconds * 2)
            assert await r.take(1) == ["turn"]

    async def test_input_and_output_are_apart(self, input_rig: RigMaker) -> None:
        async with input_rig() as r, r.transport.output.consumer() as other:
            await r.send("session", "turn")
            await r.expect_nothing(other)
            assert await r.take(1) == ["turn"]

    async def test_every_field_of_a_request_arrives(self, input_rig: RigMaker) -> None:
        async with input_rig() as r:
            await r.queue.send(full_request())
            assert (await r.receive()).envelope == full_request()

    async def test_every_field_of_an_answer_arrives(self, output_rig: RigMaker) -> None:
        sent = full_request().answer(
            attempt=3,
            fence=7,
            payload=ChatReply(result="42", extra={"status": "paused", "run_id": "r"}),
            status_code=202,
            chunk_count=5,
        )
        async with output_rig() as r:
            await r.queue.send(sent)
            assert (await r.receive()).envelope == sent

    async def test_a_failure_arrives_with_its_hints(self, output_rig: RigMaker) -> None:
        failure = Failure(
            code="session_queue_full",
            message="Too many turns waiting",
            status_code=429,
            retry=RetryHint.AFTER,
            retry_after=2.5,
            field="session_id",
        )
        sent = full_request().answer(attempt=1, fence=1, payload=failure)
        async with output_rig() as r:
            await r.queue.send(sent)
            assert (await r.receive()).envelope == sent

    async def test_chunks_arrive_in_their_order(self, output_rig: RigMaker) -> None:
        sent = chunks("session", "turn", "Hel", "lo", " ", "🙂", first=4)
        async with output_rig() as r:
            await r.queue.send(sent)
            got = (await r.receive()).envelope
            assert got.payload is None
            assert [chunk.position for chunk in got.chunks] == [c.position for c in sent.chunks]
            assert [chunk.delta for chunk in got.chunks] == ["Hel", "lo", " ", "🙂"]

    @pytest.mark.parametrize("odd", ODD_IDS, ids=range(len(ODD_IDS)))
    async def test_any_valid_id_travels_unharmed(self, input_rig: RigMaker, odd: str) -> None:
        async with input_rig() as r:
            sent = request(odd, odd, scope=odd)
            await r.queue.send(sent)
            delivery = await r.receive()
            assert delivery.envelope == sent
            await delivery.ack()
            await r.expect_nothing()

    @pytest.mark.parametrize("odd", ODD_PROMPTS, ids=range(len(ODD_PROMPTS)))
    async def test_any_text_travels_unharmed(self, input_rig: RigMaker, odd: str) -> None:
        async with input_rig() as r:
            await r.queue.send(request("session", "turn", prompt=odd))
            payload = (await r.receive()).envelope.payload
            assert isinstance(payload, ChatRequest)
            assert payload.prompt == odd

    async def test_many_envelopes_of_many_sessions_all_arrive_once(self, rig: RigMaker) -> None:
        async with rig() as r:
            for turn in range(10):
                for session in range(12):
                    await r.send(f"session-{session}", f"turn-{session}-{turn}")
            taken = await r.take(120)
            assert sorted(taken) == sorted(f"turn-{s}-{t}" for s in range(12) for t in range(10))
            await r.expect_nothing()

    async def test_pieces_and_end_of_a_stream_arrive_in_order(self, output_rig: RigMaker) -> None:
        sent = [
            chunks("session", "turn", "a", "b", first=0),
            chunks("session", "turn", "c", first=2),
            answer("session", "turn", result="abc"),
        ]
        async with output_rig() as r:
            for envelope in sent:
                assert await r.queue.send(envelope) is True
            for envelope in sent:
                delivery = await r.receive()
                assert delivery.envelope == envelope
                await delivery.ack()
