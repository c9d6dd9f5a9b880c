"""Long values, many of them, and old ones: nothing is lost for its size, nothing kept for ever."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from turnline.errors import PayloadTooLargeError
from turnline.protocol import ChatEvent, ChatReply, Chunk, EventType, Failure
from turnline.store import Connection, Done, Gap, StoredReply
from turnline.store.dynamodb import (
    SESSIONS,
    DynamoDbConnectionStore,
    DynamoDbResponseStore,
    DynamoDbSessionOptions,
    DynamoDbSessionStore,
    create_table,
)
from turnline.store.dynamodb.store_rig import (
    DAY,
    MovedTime,
    items_of,
    new_name,
    open_connections,
    open_dynamodb,
    open_replies,
    open_sessions,
    open_table,
)
from turnline.testing.conformance.stores.ledger_rig import (
    KEY,
    LONG,
    begin,
    commit,
    look,
    outcome,
    record,
    run_turn,
    told,
)
from turnline.testing.conformance.stores.reply_rig import KEY as TURN
from turnline.testing.conformance.stores.reply_rig import (
    SESSION,
    add,
    chunk,
    chunks,
    read_all,
    reply,
)
from turnline.testing.servers.aws_front import AwsFront
from turnline.testing.servers.dynamodb import DynamoDbServer

_LONG = "ü" * 500_000  # a million bytes, over twice what an item holds


@pytest.fixture
def time() -> MovedTime:
    return MovedTime()


@pytest.fixture
def table() -> str:
    """The table of `sessions`."""
    return new_name()


@pytest.fixture
async def sessions(
    server: DynamoDbServer, time: MovedTime, table: str
) -> AsyncIterator[DynamoDbSessionStore]:
    async with open_sessions(server.url, time.clock, name=table) as store:
        yield store


async def _items(server: DynamoDbServer, table: str) -> list[dict[str, Any]]:
    async with open_dynamodb(server.url) as client:
        return await items_of(client, table)


@pytest.fixture
async def replies(server: DynamoDbServer, time: MovedTime) -> AsyncIterator[DynamoDbResponseStore]:
    async with open_replies(server.url, time.clock) as store:
        yield store


@pytest.fixture
async def connections(
    server: DynamoDbServer, time: MovedTime
) -> AsyncIterator[DynamoDbConnectionStore]:
    async with open_connections(server.url, time.clock) as store:
        yield store


@pytest.mark.parametrize("size", [299_000, 301_000, 379_000, 3_400_000])
async def test_an_end_of_any_size_is_read_as_it_was_put(
    replies: DynamoDbResponseStore, size: int
) -> None:
    end = reply("x" * size)

    await replies.put(TURN, end)

    assert await replies.get(TURN) == end
    assert await replies.wait(TURN, 1) == end


async def test_an_end_over_all_sizes_is_a_failure_that_says_so(
    replies: DynamoDbResponseStore,
) -> None:
    await replies.put(TURN, reply("x" * 3_600_000, attempt=2, chunks=3))

    end = await replies.get(TURN)
    assert isinstance(end, StoredReply)
    assert isinstance(end.payload, Failure)
    assert (end.status_code, end.payload.code) == (413, "payload_too_large")
    assert (end.attempt, end.chunk_count) == (2, 3)


async def test_a_turn_of_any_size_is_read_as_it_was_committed(
    sessions: DynamoDbSessionStore,
) -> None:
    begun = await begin(sessions, "t1")
    ended = replace(outcome(begun.claim), payload=ChatReply(result=_LONG))
    kept = record("t1", "hello", {"calls": [_LONG]})

    await sessions.commit_turn(begun.claim, ended, record=kept, state={"note": _LONG})

    assert await sessions.begin_turn(KEY, "t1", lease=LONG) == Done(outcome=ended)
    session = await look(sessions)
    assert session.state == {"note": _LONG}
    assert [list(turn.items) for turn in session.history] == [[{"calls": [_LONG]}]]


async def test_a_turn_over_all_sizes_is_refused_and_can_end_otherwise(
    sessions: DynamoDbSessionStore,
) -> None:
    await run_turn(sessions, "t0", state={"n": 0})
    begun = await begin(sessions, "t1")

    with pytest.raises(PayloadTooLargeError):
        await commit(sessions, begun.claim, state={"a": _LONG, "b": _LONG, "c": _LONG, "d": _LONG})

    await commit(sessions, begun.claim, "short", state={"n": 0})
    session = await look(sessions)
    assert (told(session), session.state) == ([("t0", "hello"), ("t1", "short")], {"n": 0})


async def test_a_state_that_did_not_change_is_not_written_again(
    sessions: DynamoDbSessionStore,
) -> None:
    state = {"a": "x" * 3_000_000}
    await run_turn(sessions, "t1", state=state)

    # Written again, it would be over the size of a transaction with this.
    begun = await begin(sessions, "t2")
    ended = replace(outcome(begun.claim), payload=ChatReply(result=_LONG))
    await sessions.commit_turn(begun.claim, ended, record=None, state=state)

    assert (await look(sessions)).state == state


async def test_a_state_that_shrinks_leaves_nothing_of_the_old_one(
    sessions: DynamoDbSessionStore,
) -> None:
    for number, size in enumerate([1_000_000, 500_000, 10, 400_000]):
        await run_turn(sessions, f"t{number}", state={"x": "y" * size})

        assert (await look(sessions)).state == {"x": "y" * size}


async def test_a_history_of_several_pages_is_read_whole(sessions: DynamoDbSessionStore) -> None:
    for number in range(4):
        await run_turn(sessions, f"t{number}", f"{number}" + "x" * 600_000)

    session = await look(sessions)

    assert [reply[0] for _, reply in told(session)] == ["0", "1", "2", "3"]


async def test_chunks_of_any_size_are_read_as_they_came(replies: DynamoDbResponseStore) -> None:
    def large(index: int, size: int) -> Chunk:
        event = ChatEvent(type=EventType.TEXT_DELTA, content=f"{index}\n" + "x" * size)
        return Chunk(attempt=1, index=index, event=event)

    sizes = [10, 900_000, 500_000, 10, 600_000, 2_000_000, 10]
    sent = [large(index, size) for index, size in enumerate(sizes)]
    await replies.append(TURN, session_id=SESSION, chunks=sent)
    await replies.put(TURN, reply(chunks=len(sent)))

    assert await read_all(replies, MovedTime()) == [*sent, reply(chunks=len(sent))]


async def test_a_stream_of_many_items_is_read_whole_and_in_order(
    replies: DynamoDbResponseStore,
) -> None:
    for index in range(50):
        await add(replies, 1, index, index)
    await replies.put(TURN, reply(chunks=50))

    assert await read_all(replies, MovedTime()) == [*chunks(1, 0, 49), reply(chunks=50)]


async def test_a_frame_of_any_size_is_held(connections: DynamoDbConnectionStore) -> None:
    frames: list[dict[str, Any]] = [{"n": 1, "text": _LONG}, {"n": 2}, {"n": 3, "text": _LONG}]
    for frame in frames:
        await connections.hold("u", frame)

    assert list((await connections.held("u")).frames) == frames


async def test_a_frame_over_all_sizes_is_refused(connections: DynamoDbConnectionStore) -> None:
    with pytest.raises(PayloadTooLargeError):
        await connections.hold("u", {"text": "x" * 3_600_000})


async def test_a_session_with_many_sockets_gives_them_all(
    connections: DynamoDbConnectionStore,
) -> None:
    # Beyond a page of a megabyte.
    for number in range(12):
        endpoint = f"http://{number:02d}/" + "x" * 100_000
        socket = Connection(user_id="u", connection_id=f"c{number}", endpoint=endpoint)
        await connections.add(socket)

    found = await connections.connections_of("u")

    assert [socket.endpoint[7:9] for socket in found] == [f"{number:02d}" for number in range(12)]


# --- expiry: the emulator removes nothing, as DynamoDB removes late -------------------------------


async def test_an_expired_answer_is_gone_though_its_items_are_there(
    replies: DynamoDbResponseStore, time: MovedTime
) -> None:
    await add(replies, 1, 0, 5)
    await replies.put(TURN, reply(chunks=6))
    time.clock.move(DAY + 1)

    assert await replies.get(TURN) is None
    assert await replies.wait(TURN, 0) is None


async def test_the_next_life_of_an_answer_shows_nothing_of_the_one_before(
    replies: DynamoDbResponseStore, time: MovedTime
) -> None:
    await add(replies, 1, 0, 1)
    await replies.put(TURN, reply("x" * 500_000, chunks=2))
    time.clock.move(DAY + 1)

    await add(replies, 1, 3, 3)
    await replies.put(TURN, reply(chunks=4))

    gap = Gap(attempt=1, first=0, last=2)
    assert await read_all(replies, time) == [gap, chunk(1, 3), reply(chunks=4)]


async def test_the_next_life_after_a_discard_shows_nothing_of_the_one_before(
    replies: DynamoDbResponseStore, time: MovedTime
) -> None:
    await add(replies, 1, 0, 0)
    await replies.discard(TURN)
    await add(replies, 1, 2, 2)
    await replies.put(TURN, reply(chunks=3))

    gap = Gap(attempt=1, first=0, last=1)
    assert await read_all(replies, time) == [gap, chunk(1, 2), reply(chunks=3)]


async def test_a_session_that_is_used_keeps_history_and_state_for_ever(
    server: DynamoDbServer, sessions: DynamoDbSessionStore, table: str, time: MovedTime
) -> None:
    await run_turn(sessions, "t0", state={"x": "y" * 500_000})
    for _ in range(8):
        time.clock.move(0.9 * DAY)
        await look(sessions)

    session = await look(sessions)

    assert told(session) == [("t0", "hello")]
    assert session.state == {"x": "y" * 500_000}
    now = time.clock.time()
    left: dict[str, list[float]] = {"turn": [], "stat": [], "ledg": [], "end#": []}
    for item in await _items(server, table):
        left[item["part"]["S"][:4]].append(int(item["expiry_time"]["N"]) - now)
    # Each outlasts any next use, all pieces of the state included.
    assert min(left["turn"] + left["stat"]) > DAY
    assert len(left["stat"]) == 2


async def test_most_uses_of_a_session_refresh_nothing(
    sessions: DynamoDbSessionStore, front: AwsFront, table: str, time: MovedTime
) -> None:
    for number in range(5):
        await run_turn(sessions, f"t{number}", state={"n": 1})
    async with open_table(front.url, table, SESSIONS, time.clock) as watched:
        store = DynamoDbSessionStore(DynamoDbSessionOptions(ttl=DAY), watched)
        for _ in range(8):
            time.clock.move(0.5 * DAY)
            await look(store)

    # Four TTLs of use: five turns and a state, each at most once in 1.5 TTLs.
    assert 6 <= len(front.made("UpdateItem")) <= 12


async def test_a_done_mark_outlives_any_redelivery_of_a_session_in_use(
    server: DynamoDbServer, sessions: DynamoDbSessionStore, table: str, time: MovedTime
) -> None:
    claim = await run_turn(sessions, "t1")
    items = await _items(server, table)

    (end,) = [item for item in items if item["part"]["S"].startswith("end#")]
    assert int(end["expiry_time"]["N"]) - time.clock.time() > 14 * DAY
    for _ in range(4):
        time.clock.move(0.99 * DAY)
        await look(sessions)
    assert await sessions.begin_turn(KEY, "t1", lease=LONG) == Done(outcome=outcome(claim))


async def test_a_session_that_expired_and_comes_back_has_higher_fences(
    sessions: DynamoDbSessionStore, time: MovedTime
) -> None:
    before = await run_turn(sessions, "t1")
    time.clock.move(DAY + 1)

    assert (await begin(sessions, "t1")).claim.fence > before.fence


async def test_a_lease_longer_than_the_ttl_keeps_its_session(server: DynamoDbServer) -> None:
    time, name = MovedTime(), new_name()
    async with open_table(server.url, name, SESSIONS, time.clock) as table:
        await create_table(table.client, name, SESSIONS)
        store = DynamoDbSessionStore(DynamoDbSessionOptions(ttl=1), table)
        begun = await store.begin_turn(KEY, "t1", lease=100)
        time.clock.move(50)
        assert not isinstance(begun, Done)
        assert type(await store.begin_turn(KEY, "t2", lease=100)).__name__ == "Busy"


async def test_request_ids_that_look_like_pieces_do_not_meet(
    sessions: DynamoDbSessionStore,
) -> None:
    ids = ["t", "t#00", "t#01", "t#00#00", "t#99"]
    for turn in ids:
        begun = await begin(sessions, turn)
        ended = replace(outcome(begun.claim), payload=ChatReply(result=turn + "x" * 400_000))
        await sessions.commit_turn(begun.claim, ended, record=None, state={})

    found = [await sessions.begin_turn(KEY, turn, lease=LONG) for turn in ids]

    texts = [each.outcome.payload for each in found if isinstance(each, Done)]
    assert [
        payload.result.rstrip("x") for payload in texts if isinstance(payload, ChatReply)
    ] == ids
