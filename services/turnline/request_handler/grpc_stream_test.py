"""Streams over gRPC: numbered, resumed, and ended once."""

import asyncio

import grpc.aio

from turnline.protocol import ChatEvent, ChatReply, Chunk, EventType, ReplyKey
from turnline.request_handler.grpc_rig import (
    Served,
    attach,
    chat,
    end_of,
    items,
    kinds,
    places,
    read,
    refused,
    serving,
    stream,
    submit,
    text,
)
from turnline.request_handler.rig import RigOptions
from turnline.store import StoredReply
from turnline.v1 import chat_service_pb2 as pb

KEY = ReplyKey("", "r1")


async def append(served: Served, attempt: int, *indices: int, content: str = "") -> None:
    """Stream chunks of r1 as a responder would."""
    chunks = [
        Chunk(
            attempt=attempt,
            index=index,
            event=ChatEvent(type=EventType.TEXT_DELTA, content=content or f"a{attempt}i{index} "),
        )
        for index in indices
    ]
    await served.rig.replies.append(KEY, session_id="s1", chunks=chunks)


async def finish(served: Served, *, attempt: int, chunk_count: int, result: str = "all") -> None:
    """End r1 as a responder would."""
    reply = StoredReply(
        request_id="r1",
        session_id="s1",
        status_code=200,
        payload=ChatReply(result=result),
        attempt=attempt,
        chunk_count=chunk_count,
    )
    await served.rig.replies.put(KEY, reply)


async def test_a_stream_is_admitted_then_numbered_then_ended_once() -> None:
    async with serving() as served:
        got = await items(served.stub.StreamChat(stream("chunks=3", request_id="r1")))

    assert kinds(got) == ["admitted", "chunk", "chunk", "chunk", "end"]
    assert got[0].admitted == pb.SubmitResponse(request_id="r1", session_id="s1", known=False)
    assert places(got) == [(1, 0), (1, 1), (1, 2)]
    assert text(got) == got[-1].end.reply.result == "w0 w1 w2 "
    assert got[-1].end.chunk_count == 3


async def test_items_come_as_they_are_made() -> None:
    async with serving() as served:
        call = served.stub.StreamChat(stream("chunks=3 pause=2"))
        got = await read(call, 3)
        served.rig.released.set()
        rest = await read(call, 2)
        ended = await call.read()

    assert kinds(got) == ["admitted", "chunk", "chunk"]
    assert kinds(rest) == ["chunk", "end"]
    assert ended is grpc.aio.EOF


async def test_a_stream_resumes_behind_the_place_that_was_seen() -> None:
    async with serving() as served:
        request = stream("chunks=5", request_id="r1")
        await items(served.stub.StreamChat(request))
        by_request = await items(
            served.stub.StreamChat(stream("chunks=5", request_id="r1", after=(1, 2)))
        )
        by_name = await items(served.stub.StreamChat(attach("r1", after=(1, 2))))

    assert places(by_request) == places(by_name) == [(1, 3), (1, 4)]
    assert by_request[0].admitted.known
    assert kinds(by_name) == ["admitted", "chunk", "chunk", "end"]
    assert by_name[-1].end.reply.result == "w0 w1 w2 w3 w4 "
    assert len(served.rig.envelopes) == 1


async def test_a_place_that_says_nothing_is_the_beginning() -> None:
    async with serving() as served:
        await items(served.stub.StreamChat(stream("chunks=2", request_id="r1")))
        got = await items(served.stub.StreamChat(attach("r1", after=(0, 0))))

    assert places(got) == [(1, 0), (1, 1)]


async def test_readers_of_one_turn_all_get_the_whole_of_it() -> None:
    async with serving() as served, asyncio.TaskGroup() as tasks:
        calls = [
            tasks.create_task(
                items(served.stub.StreamChat(stream("chunks=4 pause=2", request_id="r1")))
            )
            for _ in range(3)
        ]
        await served.rig.waiting.holds(3)
        served.rig.released.set()

    assert [text(call.result()) for call in calls] == ["w0 w1 w2 w3 "] * 3
    assert len(served.rig.envelopes) == 1


async def test_a_turn_submitted_without_a_stream_can_be_attached_to() -> None:
    async with serving() as served:
        await served.stub.Submit(submit("hello", request_id="r1"))
        got = await items(served.stub.StreamChat(attach("r1")))

    assert kinds(got) == ["admitted", "end"]
    assert got[-1].end.reply.result == "echo: hello"


async def test_a_new_attempt_is_told_before_its_chunks() -> None:
    async with serving(RigOptions(running=False)) as served:
        await served.stub.Submit(submit(request_id="r1"))
        call = served.stub.StreamChat(attach("r1"))
        await append(served, 1, 0, 1)
        seen = await read(call, 3)
        await append(served, 2, 0)
        await finish(served, attempt=2, chunk_count=1)
        rest = await read(call, 3)

    assert kinds(seen) == ["admitted", "chunk", "chunk"]
    assert kinds(rest) == ["restart", "chunk", "end"]
    assert rest[0].restart.attempt == 2


async def test_a_reader_who_resumes_behind_a_voided_attempt_is_told_so() -> None:
    async with serving(RigOptions(running=False)) as served:
        await served.stub.Submit(submit(request_id="r1"))
        await append(served, 2, 0, 1)
        await finish(served, attempt=2, chunk_count=2)
        got = await items(served.stub.StreamChat(attach("r1", after=(1, 5))))

    assert kinds(got) == ["admitted", "restart", "chunk", "chunk", "end"]


async def test_chunks_that_are_gone_are_told_and_the_end_says_the_whole() -> None:
    async with serving(RigOptions(running=False, max_chunks_per_reply=2)) as served:
        await served.stub.Submit(submit(request_id="r1"))
        await append(served, 1, 0, 1, 2, 3)
        await finish(served, attempt=1, chunk_count=4, result="the whole text")
        got = await items(served.stub.StreamChat(attach("r1")))

    [gap] = [item.gap for item in got if item.HasField("gap")]
    assert (gap.attempt, gap.first, gap.last) == (1, 0, 1)
    assert places(got) == [(1, 2), (1, 3)]
    assert got[-1].end.reply.result == "the whole text"
    rendered = served.rig.metrics.render()[0].decode()
    assert "turnline_stream_gaps_total 1.0" in rendered


async def test_a_failed_turn_is_the_end_of_its_stream() -> None:
    async with serving() as served:
        got = await items(served.stub.StreamChat(stream("chunks=1 fail")))

    assert kinds(got) == ["admitted", "chunk", "end"]
    assert got[-1].end.failure.code == "agent_failed"


# --- readers who go, or wait in vain --------------------------------------------------------------


async def test_a_turn_outlives_a_reader_who_cancels_and_is_resumed() -> None:
    async with serving() as served:
        call = served.stub.StreamChat(stream("chunks=4 pause=2", request_id="r1"))
        await read(call, 3)
        call.cancel()
        await served.rig.waiting.holds(0)
        served.rig.released.set()
        got = await items(served.stub.StreamChat(attach("r1", after=(1, 1))))

    assert places(got) == [(1, 2), (1, 3)]
    assert got[-1].end.reply.result == "w0 w1 w2 w3 "


async def test_a_turn_outlives_the_deadline_of_its_stream() -> None:
    async with serving() as served:
        call = served.stub.StreamChat(stream("chunks=2 pause=1", request_id="r1"), timeout=0.3)
        refusal = await refused(items(call))
        await served.rig.waiting.holds(0)
        served.rig.released.set()
        end = await end_of(served, "r1")

    assert refusal.code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert end.reply.result == "w0 w1 "


async def test_a_silent_stream_is_ended_and_can_be_resumed() -> None:
    async with serving(RigOptions(idle=0.2)) as served:
        call = served.stub.StreamChat(stream("chunks=2 pause=1", request_id="r1"))
        refusal = await refused(items(call))
        served.rig.released.set()
        await end_of(served, "r1")
        got = await items(served.stub.StreamChat(attach("r1", after=(1, 0))))

    assert (refusal.code, refusal.text) == (
        grpc.StatusCode.DEADLINE_EXCEEDED,
        "Stream timed out",
    )
    assert (refusal.info.reason, refusal.info.metadata["retry"]) == ("reply_not_ready", "after")
    assert refusal.info.metadata["request_id"] == "r1"
    assert places(got) == [(1, 1)]


async def test_a_reader_is_told_to_come_back_when_the_process_closes() -> None:
    async with serving() as served:
        call = served.stub.StreamChat(stream("chunks=2 pause=1", request_id="r1"))
        seen = await read(call, 2)
        await served.rig.waiting.holds(1)
        await served.rig.waiting.close()
        refusal = await refused(call.read())

    assert len(seen) == 2
    assert (refusal.code, refusal.info.reason) == (grpc.StatusCode.UNAVAILABLE, "draining")
    assert refusal.pause == 1.0
    assert refusal.info.metadata["request_id"] == "r1"


async def test_a_turn_that_has_ended_is_read_to_its_end_while_the_process_closes() -> None:
    async with serving() as served:
        await served.stub.Chat(chat("chunks=500", request_id="r1"))
        await served.rig.waiting.close()
        got = await items(served.stub.StreamChat(attach("r1")))

    assert len(places(got)) == 500
    assert kinds(got)[-1] == "end"


async def test_a_reader_who_outlasts_the_drain_is_cut_off_and_counted_as_that() -> None:
    async with serving(RigOptions(running=False)) as served:
        await served.stub.Submit(submit(request_id="r1"))
        for index in range(200):
            await append(served, 1, index, content="x" * 100_000)
        call = served.stub.StreamChat(attach("r1"))
        await read(call, 1)
        await served.rig.waiting.close()
        served.draining.set()
        served.stop.set()
        await served.closed.wait()
        refusal = await refused(read(call, 200))
        rendered = served.rig.metrics.render()[0].decode()

    assert refusal.code is grpc.StatusCode.UNAVAILABLE
    assert 'requests_total{mode="resume",status="503",surface="grpc"} 1.0' in rendered
