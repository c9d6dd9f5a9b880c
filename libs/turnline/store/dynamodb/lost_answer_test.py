"""Writes whose answer was lost: each has its effect once, and is known to have had it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from turnline.errors import StoreUnavailableError
from turnline.protocol import BEGINNING
from turnline.protocol.clock import SystemClock
from turnline.store import Cancelled, Connection, Done, New, Opened, PendingReply
from turnline.store.dynamodb import (
    RESPONSES,
    DynamoDbConnectionStore,
    DynamoDbResponseOptions,
    DynamoDbResponseStore,
    DynamoDbSessionStore,
    create_table,
)
from turnline.store.dynamodb.store_rig import (
    MovedTime,
    new_name,
    open_connections,
    open_dynamodb,
    open_replies,
    open_sessions,
)
from turnline.store.dynamodb.table import Table, TableOptions
from turnline.testing.conformance.stores.ledger_rig import (
    KEY,
    LONG,
    begin,
    commit,
    is_cancelled,
    look,
    outcome,
    run_turn,
    told,
)
from turnline.testing.conformance.stores.reply_rig import KEY as TURN
from turnline.testing.conformance.stores.reply_rig import (
    SESSION,
    add,
    chunks,
    failed,
    read_all,
    reply,
)
from turnline.testing.servers.aws_front import AwsFront, error

_CLOCK = SystemClock()
_WRITES = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems")


def _lose(front: AwsFront, times: int = 1) -> None:
    """Lose the answers to the next writes of each kind; they have their effect."""
    for operation in _WRITES:
        front.next(operation, *[error(500, "InternalServerError", after=True)] * times)


class _Interrupted(Table):
    """A table of which something happens between a call's first try and its second."""

    between_tries: Callable[[], Awaitable[object]] | None = None

    async def pause(self, tries: int, *, longest: float = 0.5) -> None:
        """Wait, after what is to happen."""
        happens, self.between_tries = self.between_tries, None
        if happens is not None:
            await happens()
        await super().pause(tries, longest=longest)


@asynccontextmanager
async def _interrupted(
    front: AwsFront, happens: Callable[[DynamoDbResponseStore], Awaitable[object]]
) -> AsyncIterator[DynamoDbResponseStore]:
    """Give a store; `happens` is done, on another one, when a call of it pauses."""
    options = DynamoDbResponseOptions(ttl=60)
    named = TableOptions(setting="a.table", name=new_name())
    async with open_dynamodb(front.url) as client:
        await create_table(client, named.name, RESPONSES)
        table = _Interrupted(client, RESPONSES, named, _CLOCK)
        other = DynamoDbResponseStore(options, Table(client, RESPONSES, named, _CLOCK))
        table.between_tries = lambda: happens(other)
        yield DynamoDbResponseStore(options, table)
        assert table.between_tries is None


@pytest.fixture
async def sessions(front: AwsFront) -> AsyncIterator[DynamoDbSessionStore]:
    async with open_sessions(front.url, _CLOCK, deadline=5.0) as store:
        yield store


@pytest.fixture
async def replies(front: AwsFront) -> AsyncIterator[DynamoDbResponseStore]:
    async with open_replies(front.url, _CLOCK) as store:
        yield store


@pytest.fixture
async def connections(front: AwsFront) -> AsyncIterator[DynamoDbConnectionStore]:
    async with open_connections(front.url, _CLOCK) as store:
        yield store


async def test_a_claim_is_given_to_who_made_it(
    sessions: DynamoDbSessionStore, front: AwsFront
) -> None:
    _lose(front)

    begun = await sessions.begin_turn(KEY, "t1", lease=LONG)

    assert isinstance(begun, New)
    assert begun.claim.attempt == 1
    await commit(sessions, begun.claim)
    assert told(await look(sessions)) == [("t1", "hello")]


async def test_a_commit_is_in_history_once(sessions: DynamoDbSessionStore, front: AwsFront) -> None:
    begun = await begin(sessions, "t1")
    _lose(front, 3)

    await commit(sessions, begun.claim, state={"n": 1})

    assert len(front.made("TransactWriteItems")) == 4
    replayed = await sessions.begin_turn(KEY, "t1", lease=LONG)
    assert replayed == Done(outcome=outcome(begun.claim))


async def test_a_commit_that_was_given_up_on_is_known_when_it_is_made_again(
    sessions: DynamoDbSessionStore, front: AwsFront
) -> None:
    begun = await begin(sessions, "t1")
    front.next("TransactWriteItems", error(500, "InternalServerError", after=True))
    front.always("TransactWriteItems", error(500, "InternalServerError"))
    with pytest.raises(StoreUnavailableError):
        await commit(sessions, begun.claim, "first", state={"n": 1})
    front.always("TransactWriteItems", None)
    await run_turn(sessions, "t2", "second", state={"n": 2})

    await commit(sessions, begun.claim, "first", state={"n": 1})

    session = await look(sessions)
    assert told(session) == [("t1", "first"), ("t2", "second")]
    assert session.state == {"n": 2}


async def test_every_try_of_a_transaction_carries_one_token(
    sessions: DynamoDbSessionStore, front: AwsFront
) -> None:
    begun = await begin(sessions, "t1")
    front.next("TransactWriteItems", *[error(500, "InternalServerError")] * 2)

    await commit(sessions, begun.claim)

    made = front.made("TransactWriteItems")
    assert len(made) == 3
    assert len({each["ClientRequestToken"] for each in made}) == 1
    assert len(made[0]["ClientRequestToken"]) <= 36


async def test_two_transactions_have_two_tokens(
    sessions: DynamoDbSessionStore, front: AwsFront
) -> None:
    for turn in ("t1", "t2"):
        await run_turn(sessions, turn)

    tokens = {each["ClientRequestToken"] for each in front.made("TransactWriteItems")}
    assert len(tokens) == 2


async def test_a_renewal_holds(sessions: DynamoDbSessionStore, front: AwsFront) -> None:
    begun = await begin(sessions, "t1")
    _lose(front)

    await sessions.renew_turn(begun.claim, lease=LONG)

    await commit(sessions, begun.claim)


async def test_a_claim_that_was_given_up_is_free(
    sessions: DynamoDbSessionStore, front: AwsFront
) -> None:
    begun = await begin(sessions, "t1")
    _lose(front)

    await sessions.abandon_turn(begun.claim)

    assert (await begin(sessions, "t1")).claim.attempt == 2


async def test_a_queued_turn_is_cancelled_and_told_as_queued(
    sessions: DynamoDbSessionStore, front: AwsFront
) -> None:
    _lose(front)

    assert await sessions.cancel_turn(KEY, "t1") is Cancelled.QUEUED

    assert is_cancelled(await sessions.begin_turn(KEY, "t1", lease=LONG))


async def test_who_opened_a_turn_is_told_that_it_was_new(
    replies: DynamoDbResponseStore, front: AwsFront
) -> None:
    _lose(front)

    assert await replies.open(TURN, session_id=SESSION, fingerprint="f") is Opened.NEW

    assert await replies.open(TURN, session_id=SESSION, fingerprint="f") is Opened.KNOWN


async def test_who_opened_a_turn_that_moved_on_is_told_that_it_was_new(front: AwsFront) -> None:
    async with _interrupted(front, lambda other: add(other, 1, 0, 0)) as replies:
        front.next("PutItem", error(500, "InternalServerError", after=True))

        opened = await replies.open(TURN, session_id=SESSION, fingerprint="f")

    assert opened is Opened.NEW


async def test_an_end_is_stored_once(replies: DynamoDbResponseStore, front: AwsFront) -> None:
    await replies.put(TURN, failed())
    _lose(front)

    await replies.put(TURN, reply("first", attempt=2))

    await replies.put(TURN, reply("second", attempt=3))
    assert await replies.get(TURN) == reply("first", attempt=2)


async def test_a_long_end_is_stored_once(replies: DynamoDbResponseStore, front: AwsFront) -> None:
    long = reply("x" * 500_000)
    _lose(front)

    await replies.put(TURN, long)

    assert await replies.get(TURN) == long


async def test_chunks_are_in_the_stream_once(
    replies: DynamoDbResponseStore, front: AwsFront
) -> None:
    for first in (0, 3):
        _lose(front)
        await add(replies, 1, first, first + 2)
    await replies.put(TURN, reply(chunks=6))

    assert await read_all(replies, MovedTime(), BEGINNING) == [*chunks(1, 0, 5), reply(chunks=6)]


async def test_a_turn_is_discarded(replies: DynamoDbResponseStore, front: AwsFront) -> None:
    await replies.open(TURN, session_id=SESSION, fingerprint="f")
    _lose(front)

    await replies.discard(TURN)

    assert await replies.get(TURN) is None


async def test_a_discard_leaves_the_turns_next_life(front: AwsFront) -> None:
    def open_again(other: DynamoDbResponseStore) -> Awaitable[object]:
        return other.open(TURN, session_id=SESSION, fingerprint="g")

    async with _interrupted(front, open_again) as replies:
        await replies.open(TURN, session_id=SESSION, fingerprint="f")
        front.next("DeleteItem", error(500, "InternalServerError", after=True))

        await replies.discard(TURN)

        assert isinstance(await replies.get(TURN), PendingReply)


_HELD: list[tuple[str, Callable[[DynamoDbConnectionStore], Awaitable[object]]]] = [
    ("add", lambda store: store.add(Connection(user_id="u", connection_id="c", endpoint="e"))),
    ("remove", lambda store: store.remove("u", "c")),
]


@pytest.mark.parametrize(("name", "change"), _HELD, ids=[name for name, _ in _HELD])
async def test_a_socket_is_added_and_removed(
    connections: DynamoDbConnectionStore,
    front: AwsFront,
    name: str,
    change: Callable[[DynamoDbConnectionStore], Awaitable[object]],
) -> None:
    _lose(front)

    await change(connections)

    assert len(await connections.connections_of("u")) == (name == "add")


async def test_a_frame_is_held_once_and_dropped_once(
    connections: DynamoDbConnectionStore, front: AwsFront
) -> None:
    for number in range(3):
        _lose(front)
        await connections.hold("u", {"n": number})
    held = await connections.held("u")
    await connections.hold("u", {"n": 3})
    _lose(front)

    await connections.drop_held("u", held.through)

    assert list(held.frames) == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert list((await connections.held("u")).frames) == [{"n": 3}]
