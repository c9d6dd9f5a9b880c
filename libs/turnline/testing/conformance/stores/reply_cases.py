"""Cases of ResponseStore: admitting turns, and their ends."""

import asyncio

import pytest

from turnline.errors import RetryHint
from turnline.protocol import ChatReply, Failure, ReplyKey
from turnline.store import Opened, PendingReply, ResponseStore, StoredReply
from turnline.testing.conformance.stores.harness import (
    StoreTime,
    soon,
)
from turnline.testing.conformance.stores.reply_rig import (
    KEY,
    SESSION,
    ReplyCases,
    add,
    failed,
    reply,
)

_PENDING = PendingReply(request_id=KEY.request_id, session_id=SESSION)
_FULL_REPLY = ChatReply(
    result="Grüße 👋\n\u0000", extra={"status": "paused", "interruptions": [{"id": 1, "x": None}]}
)
_FULL_FAILURE = Failure(
    code="a_code_of_tomorrow",
    message="Später",
    status_code=429,
    retry=RetryHint.AFTER,
    retry_after=1.5,
    field="prompt",
)


class AdmissionCases(ReplyCases):
    """`open`, `discard` and what they leave for `get`."""

    async def test_an_unknown_turn_reads_as_none(self, store: ResponseStore) -> None:
        assert await store.get(KEY) is None

    async def test_an_opened_turn_reads_as_pending(
        self, store: ResponseStore, other: ResponseStore
    ) -> None:
        opened = await store.open(KEY, session_id=SESSION, fingerprint="f")

        assert opened is Opened.NEW
        assert await other.get(KEY) == _PENDING

    @pytest.mark.parametrize("fingerprint", ["f", ""])
    async def test_opening_again_with_the_same_body_is_known(
        self, store: ResponseStore, other: ResponseStore, fingerprint: str
    ) -> None:
        await store.open(KEY, session_id=SESSION, fingerprint=fingerprint)

        again = await other.open(KEY, session_id=SESSION, fingerprint=fingerprint)

        assert again is Opened.KNOWN

    @pytest.mark.parametrize(("first", "second"), [("f", "g"), ("f", ""), ("", "g")])
    async def test_opening_with_another_body_is_different(
        self, store: ResponseStore, first: str, second: str
    ) -> None:
        await store.open(KEY, session_id=SESSION, fingerprint=first)

        again = await store.open(KEY, session_id="another", fingerprint=second)

        assert again is Opened.DIFFERENT
        assert await store.get(KEY) == _PENDING

    async def test_a_finished_turn_still_tells_bodies_apart(self, store: ResponseStore) -> None:
        await store.open(KEY, session_id=SESSION, fingerprint="f")
        await store.put(KEY, reply())

        same = await store.open(KEY, session_id=SESSION, fingerprint="f")
        different = await store.open(KEY, session_id=SESSION, fingerprint="g")

        assert (same, different) == (Opened.KNOWN, Opened.DIFFERENT)
        assert await store.get(KEY) == reply()

    async def test_a_turn_known_by_its_end_takes_the_first_fingerprint(
        self, store: ResponseStore
    ) -> None:
        await store.put(KEY, reply())

        first = await store.open(KEY, session_id=SESSION, fingerprint="f")
        second = await store.open(KEY, session_id=SESSION, fingerprint="g")

        assert (first, second) == (Opened.KNOWN, Opened.DIFFERENT)

    async def test_a_turn_known_by_its_chunks_takes_the_first_fingerprint(
        self, store: ResponseStore
    ) -> None:
        await add(store, 1, 0, 0)

        first = await store.open(KEY, session_id=SESSION, fingerprint="f")
        second = await store.open(KEY, session_id=SESSION, fingerprint="g")

        assert (first, second) == (Opened.KNOWN, Opened.DIFFERENT)

    async def test_of_many_who_open_at_once_one_is_new(
        self, store: ResponseStore, other: ResponseStore
    ) -> None:
        stores = [store, other] * 10

        async with asyncio.TaskGroup() as tasks:
            opening = [
                tasks.create_task(each.open(KEY, session_id=SESSION, fingerprint="f"))
                for each in stores
            ]

        found = sorted(task.result() for task in opening)
        assert found == [Opened.KNOWN] * 19 + [Opened.NEW]

    async def test_the_same_id_in_another_scope_is_another_turn(self, store: ResponseStore) -> None:
        mine, yours = ReplyKey("me", "r"), ReplyKey("you", "r")
        await store.open(mine, session_id=SESSION, fingerprint="f")
        await store.put(mine, reply(request_id="r"))

        assert await store.get(yours) is None
        assert await store.open(yours, session_id=SESSION, fingerprint="g") is Opened.NEW

    async def test_no_two_keys_meet_whatever_their_characters(self, store: ResponseStore) -> None:
        keys = [
            ReplyKey("a", "b"),
            ReplyKey("", "~1a~1b"),
            ReplyKey("", "a:b"),
            ReplyKey("a~1b", "c"),
            ReplyKey("a", "b~1c"),
            ReplyKey("a:b", "c"),
            ReplyKey("a", "b:c"),
            ReplyKey("A", "b"),
            ReplyKey("", "ä {}/#"),
        ]

        opened = [await store.open(key, session_id=SESSION, fingerprint="f") for key in keys]

        assert opened == [Opened.NEW] * len(keys)

    async def test_a_discarded_turn_is_unknown(self, store: ResponseStore) -> None:
        await store.open(KEY, session_id=SESSION, fingerprint="f")

        await store.discard(KEY)

        assert await store.get(KEY) is None
        assert await store.open(KEY, session_id=SESSION, fingerprint="g") is Opened.NEW

    async def test_a_finished_turn_cannot_be_discarded(self, store: ResponseStore) -> None:
        await store.put(KEY, reply())

        await store.discard(KEY)

        assert await store.get(KEY) == reply()

    async def test_discarding_an_unknown_turn_does_nothing(self, store: ResponseStore) -> None:
        await store.discard(KEY)

        assert await store.get(KEY) is None


class EndCases(ReplyCases):
    """`put`, `get` and which end wins."""

    @pytest.mark.parametrize("payload", [_FULL_REPLY, _FULL_FAILURE], ids=["reply", "failure"])
    async def test_an_end_is_read_as_it_was_put(
        self, store: ResponseStore, other: ResponseStore, payload: ChatReply | Failure
    ) -> None:
        end = StoredReply(
            request_id=KEY.request_id,
            session_id="Sitzung ~1",
            status_code=429,
            payload=payload,
            attempt=3,
            chunk_count=17,
        )

        await store.put(KEY, end)

        assert await other.get(KEY) == end

    async def test_reading_destroys_nothing(
        self, store: ResponseStore, other: ResponseStore, time: StoreTime
    ) -> None:
        await store.put(KEY, reply())

        read = [
            await store.get(KEY),
            await soon(time, store.wait(KEY, time.patience)),
            await other.get(KEY),
            await soon(time, other.wait(KEY, time.patience)),
            await store.get(KEY),
        ]

        assert read == [reply()] * 5

    async def test_the_first_reply_wins(self, store: ResponseStore) -> None:
        await store.put(KEY, reply("first"))
        await store.put(KEY, reply("second", attempt=2))

        assert await store.get(KEY) == reply("first")

    async def test_a_reply_replaces_a_failure(self, store: ResponseStore) -> None:
        await store.put(KEY, failed())
        await store.put(KEY, reply(attempt=2))

        assert await store.get(KEY) == reply(attempt=2)

    async def test_a_failure_does_not_replace_a_reply(self, store: ResponseStore) -> None:
        await store.put(KEY, reply())
        await store.put(KEY, failed(attempt=2))

        assert await store.get(KEY) == reply()

    async def test_the_first_failure_wins(self, store: ResponseStore) -> None:
        await store.put(KEY, failed("agent_failed"))
        await store.put(KEY, failed("turn_cancelled"))

        assert await store.get(KEY) == failed("agent_failed")

    async def test_a_reply_that_replaced_a_failure_stays(self, store: ResponseStore) -> None:
        await store.put(KEY, failed())
        await store.put(KEY, reply("first", attempt=2))
        await store.put(KEY, reply("second", attempt=3))

        assert await store.get(KEY) == reply("first", attempt=2)
