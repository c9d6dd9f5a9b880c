"""Ends of turns that were pushed while this pod could not be reached, though another one was."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from turnline.gateway.rig import BODY, Served, served, start_streaming
from turnline.gateway.rig_talks import over_both
from turnline.protocol import ChatReply, Envelope
from turnline.store import StoredReply


@asynccontextmanager
async def catching_up(rig: Served) -> AsyncIterator[None]:
    """Catch up all the time, where a pod does it every few seconds."""
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(rig.hub.visit_all(0.001, rig.gateway.follower.catch_up))
        yield
        task.cancel()


async def keep(rig: Served, turn: Envelope, text: str, *, count: int = 0) -> None:
    """Keep the end of a turn, and push it nowhere."""
    reply = StoredReply(
        request_id=turn.request_id,
        session_id=turn.session_id,
        status_code=200,
        payload=ChatReply(result=text),
        attempt=1,
        chunk_count=count,
    )
    await rig.backends.stores.replies.put(turn.reply_key, reply)


@over_both
async def test_an_asker_gets_an_answer_that_was_not_pushed_here(over: str) -> None:
    async with served(over=over) as rig, rig.connect() as talk:
        await talk.ask(request_id="r", body=BODY)
        turn = await rig.take()
        async with catching_up(rig):
            await keep(rig, turn, "kept")
            frame = await talk.hear()

    assert (frame["type"], frame["request_id"], frame["result"]) == ("CHAT_RESPONSE", "r", "kept")


@pytest.mark.parametrize("seen", [0, 2])
@over_both
async def test_a_stream_that_missed_its_end_gets_it_with_the_whole_text(
    seen: int, over: str
) -> None:
    async with served(over=over) as rig, rig.connect() as talk:
        turn = await start_streaming(rig, talk)
        await rig.stream(turn, 0, *"ab"[:seen])
        before = [await talk.hear() for _ in range(seen)]
        async with catching_up(rig):
            await keep(rig, turn, "abcd", count=4)
            end = await talk.hear()

    assert "".join(frame["delta"] for frame in before) == "ab"[:seen]
    assert (end["type"], end["done"], end["result"]) == ("STREAM_CHUNK", True, "abcd")


@over_both
async def test_an_end_that_is_pushed_as_well_comes_once(over: str) -> None:
    async with served(over=over) as rig, rig.connect() as talk:
        await talk.ask(request_id="r", body=BODY)
        turn = await rig.take()
        async with catching_up(rig):
            await keep(rig, turn, "kept")
            first = await talk.hear()
            await rig.reply(turn, "kept")
            following = await talk.ask(route="no such route")

    assert first["type"] == "CHAT_RESPONSE"
    assert following["type"] == "SYSTEM_RESPONSE"


@over_both
async def test_a_turn_that_still_runs_brings_nothing(over: str) -> None:
    async with served(over=over) as rig, rig.connect() as talk:
        await talk.ask(request_id="r", body=BODY)
        turn = await rig.take()
        async with catching_up(rig):
            following = await talk.ask(route="no such route")
            await rig.reply(turn, "in time")
            end = await talk.hear()

    assert following["type"] == "SYSTEM_RESPONSE"
    assert end["result"] == "in time"
