"""Frames on client sockets, both ways, are as docs/api/asyncapi.yaml says."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from contract.api.documents import document, faults
from turnline.api_docs.frames import CLIENT_FRAMES, SERVER_FRAMES
from turnline.errors import AgentFailedError
from turnline.frontdoor import chat_response_frame
from turnline.gateway.merge import merge_adjacent
from turnline.gateway.rig import BODY, Served, chunk, done, served, start_streaming
from turnline.gateway.rig_talks import Conversation
from turnline.protocol import Failure
from turnline.protocol.json_schema import ref
from turnline.push import Frame
from turnline.store import StoredReply

DOCUMENT = document("asyncapi.yaml")
KINDS = {
    "CHAT_QUEUED": "ChatQueued",
    "CHAT_RESPONSE": "ChatResponse",
    "STREAM_CHUNK": "StreamChunk",
    "SYSTEM_RESPONSE": "SystemResponse",
}


class Heard:
    """A client's connection whose frames are held against the document."""

    def __init__(self, talk: Conversation) -> None:
        self._talk = talk

    async def ask(self, kind: str, frame: Frame) -> Frame:
        """Send a frame that is one of a kind, and read the next one."""
        assert faults(DOCUMENT, ref(kind), frame) == []
        await self._talk.say(**frame)
        return await self.hear()

    async def wrong(self, frame: Frame) -> Frame:
        """Send a frame that is none of the documented, and read the answer."""
        assert all(faults(DOCUMENT, ref(kind), frame) for kind in CLIENT_FRAMES)
        await self._talk.say(**frame)
        return await self.hear()

    async def hear(self) -> Frame:
        frame = await self._talk.hear()
        assert misfits(frame) == []
        return frame

    async def hear_until_done(self) -> list[Frame]:
        frames = [await self.hear()]
        while not frames[-1].get("done"):
            frames.append(await self.hear())
        return frames


def misfits(frame: Frame) -> list[str]:
    return faults(DOCUMENT, ref(KINDS[frame["type"]]), frame)


async def status(message: Mapping[str, object]) -> Mapping[str, object]:
    return {"up": True, "got": message}


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[Served, Heard, Conversation]]:
    async with served({"status": status}) as rig, rig.connect() as talk:
        yield rig, Heard(talk), talk


async def test_a_turn_that_is_answered_whole_is_told_as_documented() -> None:
    async with opened() as (rig, client, _):
        await client.ask("ChatFrame", {"route": "chat", "request_id": "r", "body": BODY})
        await rig.reply(await rig.take())
        answer = await client.hear()
        again = await client.ask("ChatFrame", {"request_id": "r", **BODY})
        replayed = await client.hear()

    assert answer["result"] == replayed["result"] == "done"
    assert again["type"] == "CHAT_QUEUED"


async def test_a_turn_that_failed_is_told_as_documented() -> None:
    async with opened() as (rig, client, _):
        await client.ask("ChatFrame", {"request_id": "r", "stream": False, "body": BODY})
        turn = await rig.take()
        failure = Failure.from_error(AgentFailedError("The agent failed", retry_after=1.5))
        reply = StoredReply(request_id="r", session_id="s", status_code=500, payload=failure)
        await rig.backends.stores.replies.put(turn.reply_key, reply)
        await rig.push.push_or_hold("u", [chat_response_frame(reply)])
        answer = await client.hear()

    assert (answer["code"], answer["retry_after"]) == ("agent_failed", 1.5)


async def test_a_stream_with_a_gap_and_a_new_attempt_is_told_as_documented() -> None:
    async with opened() as (rig, client, talk):
        await start_streaming(rig, talk)
        pushed = [chunk(0), chunk(5), chunk(0, attempt=2), done(1, attempt=2, status_code=200)]
        await rig.push.push("u", pushed)
        frames = await client.hear_until_done()

    kinds = [frame["event"]["type"] for frame in frames[:-1]]
    assert kinds == ["text_delta", "gap", "text_delta", "restart", "text_delta"]


async def test_a_resumed_stream_is_told_as_documented() -> None:
    async with opened() as (rig, client, talk):
        turn = await start_streaming(rig, talk)
        await rig.stream(turn, 0, "a", "b", push=False)
        await rig.reply(turn, "ab", count=2)
        resume = {"route": "resume", "request_id": "r", "body": {"after": "1-0"}}
        await client.hear_until_done()
        resuming = await client.ask("ResumeFrame", resume)
        frames = await client.hear_until_done()

    assert (resuming["state"], frames[0]["delta"]) == ("RESUMING", "b")


async def test_a_cancelled_turn_and_an_own_route_are_answered_as_documented() -> None:
    async with opened() as (_, client, _):
        await client.ask("ChatFrame", {"request_id": "r", "body": BODY})
        own = await client.ask("RouteFrame", {"route": "status", "request_id": "q", "n": 1})
        cancelled = await client.ask("CancelFrame", {"route": "cancel", "request_id": "r"})

    assert own["up"] is True
    assert cancelled["state"] == "CANCELLED"


@pytest.mark.parametrize(
    "frame",
    [
        {"route": 5},
        {"request_id": ""},
        {"route": "chat"},
        {"route": "chat", "body": []},
        {"route": "chat", "body": {"prompt": "p"}},
        {"route": "chat", "body": {"session_id": "s"}},
        {"route": "chat", "stream": "yes", "body": BODY},
        {"route": "cancel"},
        {"route": "resume", "request_id": "r", "body": {"after": "x"}},
    ],
    ids=str,
)
async def test_a_frame_that_is_not_documented_is_refused_as_documented(frame: Frame) -> None:
    async with opened() as (_, client, _):
        answer = await client.wrong(frame)

    assert answer["status"] == "FAILED"


async def test_unknown_turns_and_routes_are_told_as_documented() -> None:
    async with opened() as (_, client, _):
        for kind, frame in (
            ("RouteFrame", {"route": "nope"}),
            ("CancelFrame", {"route": "cancel", "request_id": "none"}),
            ("ResumeFrame", {"route": "resume", "request_id": "none"}),
        ):
            assert (await client.ask(kind, frame))["code"] == "not_found"


async def test_a_gateway_that_closes_says_so_as_documented() -> None:
    async with opened() as (rig, client, _):
        await client.ask("RouteFrame", {"route": "nope"})
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(rig.hub.close_all(spread=0.0))
            frame = await client.hear()

    assert frame["status"] == "RECONNECT"


def test_pieces_merged_for_a_slow_client_are_as_documented() -> None:
    [merged] = merge_adjacent([chunk(0), chunk(1), chunk(2)])

    assert merged["first_index"] == 0
    assert misfits(merged) == []


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "CHAT_QUEUED", "status": "SUCCESS"},
        {**done(1), "done": "yes"},
        {key: value for key, value in chunk(0).items() if key != "index"},
        {"type": "CHAT_RESPONSE", "status_code": 200, "session_id": "s", "request_id": "r"},
        {"type": "SYSTEM_RESPONSE", "status": "FAILED"},
    ],
    ids=str,
)
def test_a_frame_that_is_not_documented_is_seen(frame: Frame) -> None:
    assert misfits(frame)


def test_every_frame_the_gateway_sends_is_held_against_the_document() -> None:
    assert {*KINDS.values(), "PushedFrame"} == set(SERVER_FRAMES)
