"""The responder alone: envelopes on the output stream in; out come stored answers and pushes."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from contract.services.future import UNKNOWN_FIELD
from contract.services.packages import Service
from contract.services.stage import PATIENCE, Stage, stage
from turnline.protocol import BEGINNING, ChatReply, Chunk, Failure, ReplyKey
from turnline.store import StoredReply
from turnline.v1 import chat_pb2, chunk_pb2, failure_pb2
from turnline.v1 import envelope_pb2 as pb

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    async with (
        stage(tmp_path_factory.mktemp("responder")) as opened,
        opened.playing(Service.RESPONDER),
    ):
        yield opened


def answer(
    name: str, mode: pb.DeliveryMode = pb.DELIVERY_MODE_KEEP_STREAM, user: str = "ann"
) -> pb.Envelope:
    return pb.Envelope(
        request_id=f"r-{name}",
        session_id=f"s-{name}",
        scope=user,
        user_id=user,
        delivery_mode=mode,
        attempt=1,
        fence=1,
    )


def pieces(name: str, *texts: str, mode: pb.DeliveryMode, user: str = "ann") -> pb.Envelope:
    envelope = answer(name, mode, user)
    for index, text in enumerate(texts):
        event = chunk_pb2.ChatEvent(type=chunk_pb2.EVENT_TYPE_TEXT_DELTA, content=text)
        envelope.chunks.append(chunk_pb2.Chunk(attempt=1, index=index, event=event))
    return envelope


def ended(envelope: pb.Envelope, text: str, *, count: int = 0) -> pb.Envelope:
    envelope.status_code, envelope.chunk_count = 200, count
    envelope.reply.CopyFrom(chat_pb2.ChatReply(result=text))
    return envelope


async def put(at: Stage, envelope: pb.Envelope) -> None:
    await at.put("output", envelope.SerializeToString(), envelope.session_id)


async def stored(at: Stage, name: str, user: str = "ann") -> StoredReply:
    reply = await at.stores.replies.wait(ReplyKey(user, f"r-{name}"), PATIENCE)
    assert reply is not None
    return reply


async def events(at: Stage, name: str) -> list[Chunk]:
    """Read the pieces that are kept of a turn that ended."""
    async with asyncio.timeout(PATIENCE):
        stream = at.stores.replies.stream(ReplyKey("ann", f"r-{name}"), BEGINNING)
        return [item async for item in stream if isinstance(item, Chunk)]


async def test_a_reply_is_kept_for_whoever_asks(at: Stage) -> None:
    await put(at, ended(answer("kept", pb.DELIVERY_MODE_KEEP), "the answer"))

    reply = await stored(at, "kept")

    assert (reply.status_code, reply.session_id, reply.attempt) == (200, "s-kept", 1)
    assert reply.payload == ChatReply(result="the answer")
    await at.is_settled("output")


async def test_a_failure_is_kept_with_its_code_also_one_of_a_newer_version(at: Stage) -> None:
    envelope = answer("failed", pb.DELIVERY_MODE_KEEP)
    envelope.status_code = 409
    envelope.failure.CopyFrom(
        failure_pb2.Failure(code="of_a_newer_version", message="no", status_code=409)
    )
    await put(at, envelope)

    reply = await stored(at, "failed")

    assert isinstance(reply.payload, Failure)
    assert (reply.status_code, reply.payload.code) == (409, "of_a_newer_version")


async def test_pieces_are_kept_in_order_and_a_copy_of_them_once(at: Stage) -> None:
    mode = pb.DELIVERY_MODE_KEEP_STREAM
    await put(at, pieces("pieces", "a ", "b ", mode=mode))
    await put(at, pieces("pieces", "a ", "b ", mode=mode))
    await put(at, ended(answer("pieces"), "a b ", count=2))
    await stored(at, "pieces")

    assert [chunk.delta for chunk in await events(at, "pieces")] == ["a ", "b "]


async def test_an_event_of_a_newer_version_is_kept_by_its_name(at: Stage) -> None:
    envelope = answer("future")
    event = chunk_pb2.ChatEvent(type_name="of_a_newer_version")
    # Known to nobody yet.
    event.MergeFromString(b"\x08\x63")
    envelope.chunks.append(chunk_pb2.Chunk(attempt=1, index=0, event=event))
    raw = envelope.SerializeToString() + UNKNOWN_FIELD
    await at.put("output", raw, envelope.session_id)
    await put(at, ended(answer("future"), "", count=1))
    await stored(at, "future")

    [chunk] = await events(at, "future")

    assert chunk.event.to_json()["type"] == "of_a_newer_version"


async def test_an_answer_is_pushed_to_the_pod_that_holds_its_user(at: Stage) -> None:
    async with at.pod("bob") as pod:
        await put(at, ended(answer("pushed", pb.DELIVERY_MODE_PUSH, "bob"), "for bob"))

        frame = await pod.frame()

    assert (frame["type"], frame["result"]) == ("CHAT_RESPONSE", "for bob")
    assert (await stored(at, "pushed", "bob")).payload == ChatReply(result="for bob")


async def test_pieces_are_pushed_as_they_come(at: Stage) -> None:
    mode = pb.DELIVERY_MODE_PUSH_STREAM
    async with at.pod("carl") as pod:
        await put(at, pieces("live", "a ", "b ", mode=mode, user="carl"))
        first = [await pod.frame(), await pod.frame()]
        await put(at, ended(answer("live", mode, "carl"), "a b ", count=2))
        last = await pod.frame()

    assert [frame["delta"] for frame in first] == ["a ", "b "]
    assert (last["type"], last["done"], last["index"]) == ("STREAM_CHUNK", True, 2)


async def test_an_answer_for_a_user_who_is_away_is_held(at: Stage) -> None:
    await put(at, ended(answer("held", pb.DELIVERY_MODE_PUSH, "dan"), "for dan"))
    await stored(at, "held", "dan")
    await at.is_settled("output")

    [frame] = (await at.stores.connections.held("dan")).frames

    assert frame["result"] == "for dan"


async def test_what_is_no_envelope_holds_nobody_up(at: Stage) -> None:
    await at.put("output", b"\xff\xfe nonsense", "s-after")
    await put(at, ended(answer("after", pb.DELIVERY_MODE_KEEP), "still here"))

    assert (await stored(at, "after")).payload == ChatReply(result="still here")
    await at.is_settled("output")
