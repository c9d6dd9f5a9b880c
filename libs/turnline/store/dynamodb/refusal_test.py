"""What DynamoDB refuses: what passes is tried again for a while, the rest is said at once."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from turnline.errors import InternalError, StoreUnavailableError
from turnline.protocol.clock import SystemClock
from turnline.store import Connection
from turnline.store.dynamodb import (
    DynamoDbConnectionStore,
    DynamoDbResponseStore,
    DynamoDbSessionStore,
)
from turnline.store.dynamodb.store_rig import open_connections, open_replies, open_sessions
from turnline.telemetry.capture import captured_logs
from turnline.testing.conformance.stores.ledger_rig import begin, commit, look, run_turn, told
from turnline.testing.conformance.stores.reply_rig import KEY as TURN
from turnline.testing.conformance.stores.reply_rig import reply
from turnline.testing.servers.aws_front import Answer, AwsFront, error

_CLOCK = SystemClock()
_DEADLINE = 0.6
_THROTTLED = error(400, "ProvisionedThroughputExceededException")


def _cancelled(*codes: str) -> Answer:
    body = {
        "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "message": "Transaction cancelled",
        "CancellationReasons": [{"Code": code} for code in codes],
    }
    return Answer(status=400, body=body)


@pytest.fixture
async def sessions(front: AwsFront) -> AsyncIterator[DynamoDbSessionStore]:
    async with open_sessions(front.url, _CLOCK) as store:
        yield store


@pytest.fixture
async def replies(front: AwsFront) -> AsyncIterator[DynamoDbResponseStore]:
    async with open_replies(front.url, _CLOCK, deadline=_DEADLINE) as store:
        yield store


@pytest.fixture
async def connections(front: AwsFront) -> AsyncIterator[DynamoDbConnectionStore]:
    async with open_connections(front.url, _CLOCK) as store:
        yield store


async def test_throttled_calls_are_made_again(
    replies: DynamoDbResponseStore, front: AwsFront
) -> None:
    front.next("PutItem", _THROTTLED, _THROTTLED)
    front.next("GetItem", _THROTTLED)

    with captured_logs() as logs:
        await replies.put(TURN, reply())

    assert await replies.get(TURN) == reply()
    events = [str(log["event"]) for log in logs]
    assert events == ["dependency.unavailable", "dependency.recovered"] * 2


async def test_what_stays_throttled_is_unavailable_in_time(
    replies: DynamoDbResponseStore, front: AwsFront
) -> None:
    front.always("PutItem", _THROTTLED)

    began = time.monotonic()
    with pytest.raises(StoreUnavailableError):
        await replies.put(TURN, reply())

    assert _DEADLINE <= time.monotonic() - began < _DEADLINE + 1
    # With pauses that grow: no hot loop.
    assert len(front.made("PutItem")) < 15


async def test_each_part_of_an_operation_shares_its_deadline(
    replies: DynamoDbResponseStore, front: AwsFront
) -> None:
    conflict = error(400, "ConditionalCheckFailedException")
    front.always("PutItem", conflict)

    async with asyncio.timeout(_DEADLINE + 1):
        with pytest.raises(StoreUnavailableError):
            await replies.put(TURN, reply())

    assert len(front.made("PutItem")) < 30


@pytest.mark.parametrize(
    "reasons",
    [
        ("TransactionConflict", "None", "None"),
        ("None", "TransactionConflict", "None"),
        ("ConditionalCheckFailed", "TransactionConflict", "None"),
        ("ThrottlingError", "None", "None"),
        ("None", "ProvisionedThroughputExceeded", "None"),
        ("TransactionConflict", "ThrottlingError", "None"),
    ],
)
async def test_a_transaction_that_others_disturbed_is_made_again(
    sessions: DynamoDbSessionStore, front: AwsFront, reasons: tuple[str, ...]
) -> None:
    begun = await begin(sessions, "t1")
    front.next("TransactWriteItems", _cancelled(*reasons))

    await commit(sessions, begun.claim)

    assert told(await look(sessions)) == [("t1", "hello")]
    assert len(front.made("TransactWriteItems")) == 2


async def test_a_transaction_still_in_progress_is_waited_for_under_its_token(
    sessions: DynamoDbSessionStore, front: AwsFront
) -> None:
    begun = await begin(sessions, "t1")
    front.next("TransactWriteItems", error(400, "TransactionInProgressException"))

    await commit(sessions, begun.claim)

    first, second = front.made("TransactWriteItems")
    assert first["ClientRequestToken"] == second["ClientRequestToken"]


async def test_after_a_conflict_a_transaction_is_a_new_one(
    sessions: DynamoDbSessionStore, front: AwsFront
) -> None:
    begun = await begin(sessions, "t1")
    front.next("TransactWriteItems", _cancelled("TransactionConflict", "None", "None"))

    await commit(sessions, begun.claim)

    first, second = front.made("TransactWriteItems")
    assert first["ClientRequestToken"] != second["ClientRequestToken"]


@pytest.mark.parametrize("reason", ["ValidationError", "ItemCollectionSizeLimitExceeded"])
async def test_a_transaction_that_is_wrong_is_made_once(
    sessions: DynamoDbSessionStore, front: AwsFront, reason: str
) -> None:
    begun = await begin(sessions, "t1")
    front.always("TransactWriteItems", _cancelled(reason, "TransactionConflict"))

    with pytest.raises(InternalError):
        await commit(sessions, begun.claim)

    assert len(front.made("TransactWriteItems")) == 1


async def test_a_single_write_that_meets_a_transaction_is_made_again(
    sessions: DynamoDbSessionStore, connections: DynamoDbConnectionStore, front: AwsFront
) -> None:
    conflict = error(400, "TransactionConflictException")
    begun = await begin(sessions, "t1")
    front.next("UpdateItem", conflict)
    await sessions.renew_turn(begun.claim, lease=60)
    front.next("PutItem", conflict)
    await sessions.abandon_turn(begun.claim)
    front.next("UpdateItem", conflict)
    await connections.add(Connection(user_id="u", connection_id="c", endpoint="e"))
    front.next("DeleteItem", conflict)
    await connections.remove("u", "c")

    assert (await begin(sessions, "t1")).claim.attempt == 2
    assert not await connections.connections_of("u")


async def test_a_call_that_is_wrong_is_said_at_once(
    replies: DynamoDbResponseStore, front: AwsFront
) -> None:
    front.always("GetItem", error(400, "ValidationException", "names a secret"))

    with pytest.raises(InternalError) as refused:
        await replies.get(TURN)

    assert "secret" not in refused.value.message
    assert len(front.made("GetItem")) == 1


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException"])
async def test_what_an_operator_repairs_is_unavailable_until_then(
    replies: DynamoDbResponseStore, front: AwsFront, code: str
) -> None:
    front.next("GetItem", error(400, code))

    with pytest.raises(StoreUnavailableError):
        await replies.check()

    await replies.check()


async def test_a_page_that_ends_early_is_read_on(
    sessions: DynamoDbSessionStore, front: AwsFront
) -> None:
    for number in range(3):
        await run_turn(sessions, f"t{number}")
    front.next("Query", _THROTTLED)

    assert len((await look(sessions)).history) == 3
