"""Every way in which a server ends a call: what the caller is told, and how often it is tried."""

import json
import os
from pathlib import Path
from time import monotonic
from typing import Any

import grpc
import pytest

from client_tests.conftest import LONG
from client_tests.own_server import Ended, OwnServer, client_of
from turnline_client import Reply, RetryPolicy, TurnlineError
from turnline_client._wire.chat_pb2 import ChatReply, TurnEnd
from turnline_client._wire.chat_service_pb2 import (
    GetReplyResponse,
    PendingTurn,
    StreamChatResponse,
    SubmitResponse,
)

ROWS: dict[str, dict[str, Any]] = {
    row["name"]: row
    for row in json.loads(Path(os.environ["TURNLINE_STATUSES"]).read_text(encoding="utf-8"))
}
# Streams go on after it.
STILL_RUNNING = "reply_not_ready"

END = TurnEnd(reply=ChatReply(result="x"))
PENDING = GetReplyResponse(pending=PendingTurn(request_id="r1")).SerializeToString()


def ended(row: dict[str, Any]) -> Ended:
    status = row["status"]
    return Ended(grpc.StatusCode[status["code"]], status["message"], bytes.fromhex(row["trailer"]))


def told(error: TurnlineError) -> dict[str, Any]:
    return {
        "code": error.code,
        "message": error.message,
        "field": error.field,
        "status_code": error.status_code,
        "retryable": error.retryable,
        "retry_after": error.retry_after or 0,
        "request_id": error.request_id,
    }


@pytest.mark.parametrize("name", ROWS)
async def test_a_call_that_a_status_ends_tells_it_and_is_made_as_often_as_it_may(name: str) -> None:
    row = ROWS[name]
    server = OwnServer(lambda _: [ended(row)])
    async with client_of(server) as client:
        with pytest.raises(TurnlineError) as refused:
            await client.submit("x", session_id="s1", request_id="r1")

    assert told(refused.value) == row["error"]
    assert refused.value.grpc_status == row["status"]["code"]
    assert server.asked == row["tries"]


@pytest.mark.parametrize("name", sorted(ROWS.keys() - {STILL_RUNNING}))
async def test_a_stream_that_a_status_ends_does_the_same(name: str) -> None:
    row = ROWS[name]
    server = OwnServer(lambda _: [ended(row)])
    async with client_of(server) as client:
        with pytest.raises(TurnlineError) as refused:
            await anext(client.stream("x", session_id="s1", request_id="r1"))

    assert told(refused.value) == row["error"]
    assert server.asked == row["tries"]


async def test_a_reader_who_is_sent_away_for_the_silence_comes_back_as_often_as_it_takes() -> None:
    away = ended(ROWS[STILL_RUNNING])
    end = StreamChatResponse(end=END).SerializeToString()
    server = OwnServer(lambda asked: [away] if asked < 8 else [end])
    async with client_of(server) as client:
        item = await anext(client.stream("x", session_id="s1"))

    assert isinstance(item, Reply)
    assert server.asked == 8


async def test_a_reply_is_asked_for_again_with_a_pause_while_the_server_waits_less() -> None:
    end = GetReplyResponse(end=END).SerializeToString()
    server = OwnServer(lambda asked: [PENDING] if asked < 4 else [end])
    began = monotonic()
    async with client_of(server) as client:
        reply = await client.reply("r1", wait=LONG)

    assert reply is not None
    assert server.asked == 4
    assert monotonic() - began >= 0.6


async def test_a_reply_is_not_waited_for_longer_than_was_asked_nor_beyond_the_deadline() -> None:
    server = OwnServer(lambda _: [PENDING])
    async with client_of(server) as client:
        waited = await client.reply("r1", wait=0.5)
        # With a pause of 0.2 s between two.
        assert server.asked <= 3
        bounded = await client.reply("r1", wait=LONG, timeout=1)

    assert (waited, bounded) == (None, None)


async def test_callers_come_back_some_time_after_the_pause_they_were_asked_for() -> None:
    away = ended(ROWS["draining_for_long"])
    admitted = SubmitResponse(request_id="r1").SerializeToString()
    server = OwnServer(lambda asked: [away] if asked == 1 else [admitted])
    began = monotonic()
    async with client_of(server, RetryPolicy(backoff=0.4)) as client:
        await client.submit("x", session_id="s1")

    # 0.4 s as asked, and half of a half of that at least.
    assert monotonic() - began >= 0.5
