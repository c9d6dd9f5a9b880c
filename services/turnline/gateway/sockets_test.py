"""The outgoing side of one socket."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from turnline.gateway.rig import Client, chunk, done, gap
from turnline.gateway.sockets import SLOW_CONSUMER, Socket
from turnline.protocol import Position
from turnline.push import Frame

QUEUED: Frame = {"type": "CHAT_QUEUED", "request_id": "r"}


@asynccontextmanager
async def connected(client: Client, *, max_frames: int = 4) -> AsyncIterator[Socket]:
    """A socket of a client; everything is sent when the block is left."""
    async with asyncio.TaskGroup() as tasks:
        socket = Socket(
            connection_id="c",
            user_id="u",
            send=client.send,
            close=client.close,
            tasks=tasks,
            max_frames=max_frames,
            on_slow=client.slow.append,
        )
        yield socket


async def test_frames_arrive_in_order() -> None:
    client = Client()
    async with connected(client) as socket:
        assert socket.push([chunk(0), chunk(1)])
        assert socket.push([done(2)])

    assert client.seen == [chunk(0), chunk(1), done(2)]


async def test_taking_frames_never_waits_for_the_client() -> None:
    client = Client()
    client.reading.clear()
    async with connected(client) as socket:
        for turn in range(4):
            assert socket.push([chunk(0, turn=f"t{turn}")])
        await asyncio.sleep(0)
        assert len(client.seen) == 1
        client.reading.set()

    assert len(client.seen) == 4


async def test_pushed_frames_of_a_turn_wait_for_its_queued_frame() -> None:
    client = Client()
    async with connected(client) as socket:
        with socket.admitting("r"):
            socket.push([chunk(0), done(1)])
            await asyncio.sleep(0)
            assert client.seen == []
            socket.answer(QUEUED)

    assert client.seen == [QUEUED, chunk(0), done(1)]


async def test_other_turns_pass_while_one_waits_for_its_queued_frame() -> None:
    client = Client()
    async with connected(client) as socket:
        with socket.admitting("r"):
            socket.push([chunk(0), chunk(0, turn="q")])
            socket.answer(QUEUED)

    assert client.seen == [chunk(0, turn="q"), QUEUED, chunk(0)]


async def test_frames_that_waited_for_a_turn_that_was_refused_are_not_lost() -> None:
    client = Client()
    async with connected(client) as socket:
        with pytest.raises(ValueError, match="refused"), socket.admitting("r"):
            socket.push([chunk(0)])
            raise ValueError("refused")
        assert socket.push([chunk(1)])

    assert client.seen == [chunk(0), chunk(1)]


async def test_what_waits_for_a_queued_frame_is_bounded() -> None:
    client = Client()
    async with connected(client, max_frames=4) as socket:
        with socket.admitting("r"):
            assert socket.push([chunk(index) for index in range(4)])
            assert not socket.push([chunk(4)])

    assert client.closed is not None
    assert client.closed[0] == SLOW_CONSUMER


async def test_text_is_merged_for_a_client_that_reads_slowly() -> None:
    client = Client()
    client.reading.clear()
    async with connected(client, max_frames=4) as socket:
        for index in range(50):
            assert socket.push([chunk(index)])
            await asyncio.sleep(0)
        client.reading.set()

    assert "".join(frame["delta"] for frame in client.seen) == "".join(
        chunk(index)["delta"] for index in range(50)
    )
    assert client.seen[-1]["index"] == 49
    assert client.closed is None


async def test_a_client_that_reads_too_slowly_is_closed_once() -> None:
    client = Client()
    client.reading.clear()
    async with connected(client, max_frames=4) as socket:
        taken = [socket.push([chunk(0, turn=f"t{turn}")]) for turn in range(8)]
        client.reading.set()

    assert taken == [True] * 4 + [False] * 4
    assert client.closed == (SLOW_CONSUMER, "too slow; reconnect and resume")
    assert client.slow == [5]


async def test_a_client_that_left_takes_nothing_more() -> None:
    client = Client()
    client.broken = ConnectionResetError("gone")
    async with connected(client) as socket:
        socket.push([chunk(0)])
        await socket.drained()
        assert not socket.push([chunk(1)])

    assert socket.closed


async def test_a_fault_of_the_sender_closes_the_socket_before_its_group_ends() -> None:
    client = Client()
    client.broken = TypeError("not JSON")
    with pytest.raises(ExceptionGroup):
        async with connected(client) as socket:
            socket.push([chunk(0)])
            await asyncio.sleep(0)
            assert not socket.push([chunk(1)])
            await asyncio.Event().wait()


async def test_a_write_in_progress_ends_when_the_client_has_left() -> None:
    client = Client()
    client.reading.clear()
    async with asyncio.timeout(30), connected(client) as socket:
        socket.push([chunk(0)])
        await asyncio.sleep(0)
        socket.gone()

    assert client.closed is None


async def test_shutting_twice_closes_once() -> None:
    client = Client()
    async with connected(client) as socket:
        await socket.shut(1012, "first")
        await socket.shut(1008, "second")

    assert client.closed == (1012, "first")


async def test_drained_returns_when_everything_was_written() -> None:
    client = Client()
    client.reading.clear()
    async with connected(client) as socket, asyncio.TaskGroup() as tasks:
        socket.push([chunk(0), chunk(1)])
        waiter = tasks.create_task(socket.drained())
        await asyncio.sleep(0)
        assert not waiter.done()
        client.reading.set()
        await waiter
        assert client.seen == [chunk(0), chunk(1)]


async def test_drained_returns_when_the_socket_is_shut_meanwhile() -> None:
    client = Client()
    client.reading.clear()
    async with asyncio.timeout(30), connected(client) as socket, asyncio.TaskGroup() as tasks:
        socket.push([chunk(0)])
        tasks.create_task(socket.drained())
        await asyncio.sleep(0)
        await socket.shut(1012, "restart")
        client.reading.set()


async def test_a_resume_replaces_what_is_buffered_and_what_is_pushed_of_its_turn() -> None:
    client = Client()
    client.reading.clear()
    async with connected(client, max_frames=20) as socket:
        socket.push([chunk(0, turn="q"), chunk(5), chunk(1, turn="q"), chunk(6)])
        await asyncio.sleep(0)
        assert socket.start_resume("r", Position(1, 3))
        socket.push([chunk(7)])
        for index in range(4, 8):
            socket.answer(chunk(index))
        socket.end_resume("r")
        socket.push([chunk(7), chunk(8), done(9)])
        client.reading.set()

    assert [f for f in client.seen if f["request_id"] == "q"] == [
        chunk(0, turn="q"),
        chunk(1, turn="q"),
    ]
    assert [f for f in client.seen if f["request_id"] == "r"] == [
        *(chunk(index) for index in range(4, 9)),
        done(9),
    ]


async def test_a_push_behind_the_end_of_a_resume_is_not_a_second_end() -> None:
    client = Client()
    async with connected(client) as socket:
        socket.start_resume("r", Position(1, 0))
        socket.answer(chunk(1))
        socket.answer(done(2))
        socket.end_resume("r")
        socket.push([chunk(1), done(2)])

    assert client.seen == [chunk(1), done(2)]


async def test_a_resume_that_broke_off_leaves_no_hidden_gap() -> None:
    client = Client()
    async with connected(client) as socket:
        socket.start_resume("r", Position(1, 0))
        socket.answer(chunk(1))
        socket.push([chunk(2), chunk(3)])
        socket.end_resume("r")
        socket.push([chunk(4)])

    assert client.seen == [chunk(1), gap(2, 3), chunk(4)]


async def test_following_from_where_pushes_have_come_to_keeps_what_is_buffered() -> None:
    client = Client()
    client.reading.clear()
    async with connected(client) as socket:
        socket.push([chunk(0), chunk(1), chunk(2)])
        assert socket.start_resume("r", Position(1, 2))
        client.reading.set()

    assert client.seen == [chunk(0), chunk(1), chunk(2)]


async def test_a_turn_is_resumed_once_at_a_time() -> None:
    async with connected(Client()) as socket:
        assert socket.start_resume("r", Position(1, 0))
        assert not socket.start_resume("r", Position(1, 0))
        socket.end_resume("r")
        assert socket.start_resume("r", Position(1, 0))
