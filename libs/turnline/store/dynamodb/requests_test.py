"""What is asked of DynamoDB: what an emulator cannot show, or a policy has to allow."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from turnline.protocol import BEGINNING
from turnline.store import Connection
from turnline.store.dynamodb import (
    DynamoDbConnectionStore,
    DynamoDbResponseStore,
    DynamoDbSessionStore,
)
from turnline.store.dynamodb.store_rig import (
    DAY,
    MovedTime,
    open_connections,
    open_replies,
    open_sessions,
)
from turnline.testing.conformance.stores.ledger_rig import KEY, LONG, begin, look, run_turn
from turnline.testing.conformance.stores.reply_rig import KEY as TURN
from turnline.testing.conformance.stores.reply_rig import SESSION, add, failed, reply
from turnline.testing.servers.aws_front import AwsFront

Call = tuple[str, dict[str, Any]]

_MAKING = ("CreateTable", "DescribeTable", "UpdateTimeToLive")
_EXPRESSIONS = ("ConditionExpression", "UpdateExpression", "KeyConditionExpression")
_WORDS = {"AND", "BETWEEN", "SET", "attribute_exists", "attribute_not_exists", "if_not_exists"}


@pytest.fixture
def time() -> MovedTime:
    return MovedTime()


@pytest.fixture
async def replies(front: AwsFront, time: MovedTime) -> AsyncIterator[DynamoDbResponseStore]:
    async with open_replies(front.url, time.clock) as store:
        yield store


@pytest.fixture
async def sessions(front: AwsFront, time: MovedTime) -> AsyncIterator[DynamoDbSessionStore]:
    async with open_sessions(front.url, time.clock) as store:
        yield store


@pytest.fixture
async def connections(front: AwsFront, time: MovedTime) -> AsyncIterator[DynamoDbConnectionStore]:
    async with open_connections(front.url, time.clock) as store:
        yield store


async def _use_replies(store: DynamoDbResponseStore) -> None:
    await store.open(TURN, session_id=SESSION, fingerprint="f")
    await store.discard(TURN)
    await add(store, 1, 0, 2)
    await store.put(TURN, failed(chunks=3))
    await store.put(TURN, reply("x" * 900_000, attempt=2))
    await store.get(TURN)
    await store.wait(TURN, 1)
    assert [item async for item in store.stream(TURN, BEGINNING)]
    await store.check()


async def _use_sessions(store: DynamoDbSessionStore, time: MovedTime) -> None:
    await run_turn(store, "t1", state={"x": "y" * 900_000})
    for _ in range(3):
        time.clock.move(0.9 * DAY)
        await look(store)
    begun = await begin(store, "t2")
    await store.renew_turn(begun.claim, lease=LONG)
    await store.cancel_turn(KEY, "t2")
    await store.wait_cancelled(begun.claim)
    await store.abandon_turn(begun.claim)
    await store.begin_turn(KEY, "t1", lease=LONG)
    await store.check()


async def _use_connections(store: DynamoDbConnectionStore) -> None:
    await store.add(Connection(user_id="u", connection_id="c", endpoint="e"))
    await store.connections_of("u")
    await store.remove("u", "c")
    await store.hold("u", {"n": 1})
    held = await store.held("u")
    await store.drop_held("u", held.through)
    await store.check()


def _calls(front: AwsFront) -> list[Call]:
    return [call for call in front.calls if call[0] not in _MAKING]


async def test_every_read_is_consistent_and_of_a_table(
    replies: DynamoDbResponseStore,
    sessions: DynamoDbSessionStore,
    connections: DynamoDbConnectionStore,
    front: AwsFront,
    time: MovedTime,
) -> None:
    await _use_replies(replies)
    await _use_sessions(sessions, time)
    await _use_connections(connections)

    reads = [(name, body) for name, body in _calls(front) if name in ("GetItem", "Query")]
    assert len(reads) > 40
    assert all(body["ConsistentRead"] is True for _, body in reads)
    assert not [body for _, body in reads if "IndexName" in body]


async def test_attributes_stand_in_expressions_by_placeholders(
    replies: DynamoDbResponseStore,
    sessions: DynamoDbSessionStore,
    connections: DynamoDbConnectionStore,
    front: AwsFront,
    time: MovedTime,
) -> None:
    await _use_replies(replies)
    await _use_sessions(sessions, time)
    await _use_connections(connections)

    texts = [text for _, body in _calls(front) for text in _expressions(body)]
    bare = {word for text in texts for word in re.findall(r"(?<![#:\w])[A-Za-z_]\w*", text)}
    assert len(texts) > 20
    assert bare <= _WORDS


def _expressions(body: Any) -> list[str]:  # noqa: ANN401  # any JSON
    """Give every expression in a request, those of a transaction's parts included."""
    if isinstance(body, list):
        return [text for each in body for text in _expressions(each)]
    if not isinstance(body, dict):
        return []
    found = [body[name] for name in _EXPRESSIONS if name in body]
    return found + [text for each in body.values() for text in _expressions(each)]


async def test_each_store_asks_for_what_its_role_allows(
    replies: DynamoDbResponseStore,
    sessions: DynamoDbSessionStore,
    connections: DynamoDbConnectionStore,
    front: AwsFront,
    time: MovedTime,
) -> None:
    asked = []
    for using in (
        _use_replies(replies),
        _use_sessions(sessions, time),
        _use_connections(connections),
    ):
        front.calls.clear()
        await using
        asked.append(_actions(_calls(front)))

    assert asked == [
        {"GetItem", "Query", "PutItem", "DeleteItem"},
        {"GetItem", "Query", "PutItem", "UpdateItem"},
        {"GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"},
    ]


def _actions(calls: list[Call]) -> set[str]:
    """Name the actions of calls; a transaction is allowed by those of its parts."""
    actions = set()
    for name, body in calls:
        if name == "TransactWriteItems":
            actions |= {f"{kind}Item" for part in body["TransactItems"] for kind in part}
        else:
            actions.add(name)
    return actions


async def test_no_item_is_near_the_limit_of_an_item(
    replies: DynamoDbResponseStore, sessions: DynamoDbSessionStore, front: AwsFront, time: MovedTime
) -> None:
    await _use_replies(replies)
    await _use_sessions(sessions, time)

    parts = [
        part["Put"]["Item"]
        for body in front.made("TransactWriteItems")
        for part in body["TransactItems"]
    ]
    values = [len(item["value"]["B"]) * 3 // 4 for item in parts if "value" in item]
    assert len(values) > 5
    assert max(values) <= 381_000
