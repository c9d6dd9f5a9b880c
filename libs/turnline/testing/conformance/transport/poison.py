"""Cases: bytes that are no envelope end in the dead letters, and the queue goes on."""

import pytest

from turnline.protocol.codec import encode
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.conformance.transport.rig import RigMaker, waiting
from turnline.testing.conformance.transport.topic import Topic

NO_ENVELOPE = b"\xff\xfe\xfd this is no envelope"
POISON = {
    "noise": NO_ENVELOPE,
    "zeros": bytes(64),
    "cut-short": encode(request("session", "turn"))[:-3],
    "json-list": b"[1, 2, 3]",
    "broken-json": b'{"request_id": "turn", ',
}


class PoisonCases(Topic):
    """Undecodable messages."""

    @pytest.mark.parametrize("raw", POISON.values(), ids=POISON.keys())
    async def test_it_becomes_a_dead_letter_with_its_bytes_and_the_reason(
        self, rig: RigMaker, raw: bytes
    ) -> None:
        async with rig() as r:
            await r.inject(raw)
            await r.expect_nothing()
            (letter,) = await r.queue.dead_letters.list()
            assert letter.raw == raw
            assert letter.envelope is None
            assert letter.reason != ""

    async def test_it_is_dead_lettered_once(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.inject(NO_ENVELOPE)
            await r.expect_nothing()
            await r.expire_leases()
            await r.expect_nothing()
            assert len(await r.queue.dead_letters.list()) == 1

    async def test_its_session_goes_on(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.send("session", "before")
            await r.inject(NO_ENVELOPE, "session")
            await r.send("session", "after")
            assert await r.take(2) == ["before", "after"]
            await r.expect_nothing()

    async def test_other_sessions_go_on(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.inject(NO_ENVELOPE, "poisoned")
            await r.send("sound", "turn")
            assert await r.take(1) == ["turn"]

    async def test_a_row_of_it_stops_nobody(self, rig: RigMaker) -> None:
        async with rig() as r:
            for _ in range(30):
                await r.inject(NO_ENVELOPE, "session")
            await r.send("session", "turn")
            assert await r.take(1) == ["turn"]
            assert len(await r.queue.dead_letters.list()) == 30

    async def test_a_reader_that_waits_goes_on_waiting(self, rig: RigMaker) -> None:
        async with rig() as r, waiting(r.reader) as pending:
            await r.time.calm()
            await r.inject(NO_ENVELOPE)
            await r.time.calm()
            assert not pending.done()
            await r.send("session", "turn")
            assert (await r.soon(pending)).envelope.request_id == "turn"

    async def test_it_can_be_purged(self, rig: RigMaker) -> None:
        async with rig() as r:
            await r.inject(NO_ENVELOPE)
            await r.expect_nothing()
            (letter,) = await r.queue.dead_letters.list()
            assert await r.queue.dead_letters.purge(letter.id) == 1
            assert list(await r.queue.dead_letters.list()) == []

    async def test_a_good_envelope_from_elsewhere_is_delivered(self, rig: RigMaker) -> None:
        async with rig() as r:
            sent = r.envelope("session", "turn")
            await r.inject(encode(sent), sent.session_key.token)
            assert (await r.receive()).envelope == sent
