"""What becomes of one piece of an answer."""

import asyncio
from dataclasses import replace

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from turnline.errors import AgentFailedError, Code
from turnline.protocol import (
    BEGINNING,
    ChatReply,
    Chunk,
    DeliveryMode,
    Failure,
)
from turnline.responder.rig import REQUEST, Rig, chunks, reply
from turnline.store import StoredReply
from turnline.telemetry import captured_logs
from turnline.transport import Ack, Bury, Release, Retry


async def test_an_answer_is_kept_with_what_its_caller_needs() -> None:
    rig = Rig()

    assert await rig.take(reply(3, attempt=2)) == Ack()

    assert await rig.stored() == StoredReply(
        request_id="r",
        session_id="s",
        status_code=200,
        payload=ChatReply(result="all"),
        attempt=2,
        chunk_count=3,
    )


async def test_a_status_that_is_missing_is_read_as_200() -> None:
    rig = Rig()

    await rig.take(replace(reply(0), status_code=0))

    assert (await rig.stored()).status_code == 200


async def test_chunks_are_kept_in_order_before_the_end() -> None:
    rig = Rig()

    await rig.take(chunks(0, "a", "b"))
    await rig.take(chunks(2, "c"))
    await rig.take(reply(3))

    items = [item async for item in rig.replies.stream(REQUEST.reply_key, BEGINNING)]
    texts = [item.delta for item in items if isinstance(item, Chunk)]
    assert (texts, items[-1]) == (["a", "b", "c"], await rig.stored())


async def test_a_request_on_the_output_queue_is_buried() -> None:
    settlement = await Rig().take(REQUEST)

    assert isinstance(settlement, Bury)


async def test_a_stream_reaches_a_socket_chunk_by_chunk_and_ends_once() -> None:
    rig = Rig()
    await rig.open()

    for envelope in (chunks(0, "a", "b"), chunks(2, "c"), reply(3)):
        await rig.take(envelope)

    assert rig.frames() == [
        (1, 0, "a", False),
        (1, 1, "b", False),
        (1, 2, "c", False),
        (1, 3, None, True),
    ]
    assert {frame["type"] for frame in rig.sockets.seen["c1"]} == {"STREAM_CHUNK"}


async def test_the_end_of_a_streamed_turn_does_not_repeat_its_text() -> None:
    rig = Rig()
    await rig.open()

    await rig.take(chunks(0, "all"))
    await rig.take(reply(1))

    assert "result" not in rig.sockets.seen["c1"][-1]


async def test_a_turn_that_streamed_nothing_ends_with_its_text() -> None:
    rig = Rig()
    await rig.open()

    await rig.take(reply(0))

    assert rig.sockets.seen["c1"][-1]["result"] == "all"


async def test_a_later_attempt_begins_with_a_restart() -> None:
    rig = Rig()
    await rig.open()

    await rig.take(chunks(0, "a"))
    await rig.take(chunks(0, "b", attempt=2))
    await rig.take(chunks(1, "c", attempt=2))

    assert [event for _, _, event, _ in rig.frames()] == ["a", "restart", "b", "c"]


async def test_a_failure_ends_a_stream_with_its_error() -> None:
    rig = Rig()
    await rig.open()
    failure = Failure.from_error(AgentFailedError("no"))

    await rig.take(chunks(0, "a"))
    await rig.take(REQUEST.answer(attempt=1, payload=failure))

    end = rig.sockets.seen["c1"][-1]
    assert (end["done"], end["error"], end["status_code"]) == (True, "no", 500)


async def test_the_whole_end_of_a_stream_nobody_saw_is_held_and_its_chunks_are_not() -> None:
    rig = Rig()

    await rig.take(chunks(0, "a", "l"))
    await rig.take(chunks(2, "l"))
    await rig.take(reply(3))

    (held,) = (await rig.connections.held("u")).frames
    assert (held["done"], held["result"], held["type"]) == (True, "all", "STREAM_CHUNK")


async def test_a_socket_opened_before_the_end_gets_it_though_chunks_went_to_nobody() -> None:
    rig = Rig()

    await rig.take(chunks(0, "a"))
    await rig.open()
    await rig.take(reply(1))

    assert rig.frames() == [(1, 1, None, True)]


async def test_a_reply_goes_to_all_sockets_of_its_user_as_one_frame() -> None:
    rig = Rig()
    await rig.open("c1")
    await rig.open("c2")

    await rig.take(replace(reply(0), delivery_mode=DeliveryMode.PUSH))

    expected = {
        "result": "all",
        "session_id": "s",
        "request_id": "r",
        "status_code": 200,
        "type": "CHAT_RESPONSE",
    }
    assert rig.sockets.seen == {"c1": [expected], "c2": [expected]}


async def test_a_reply_nobody_takes_is_held() -> None:
    rig = Rig()

    await rig.take(replace(reply(0), delivery_mode=DeliveryMode.PUSH))

    (held,) = (await rig.connections.held("u")).frames
    assert (held["type"], held["result"]) == ("CHAT_RESPONSE", "all")


@pytest.mark.parametrize("mode", [DeliveryMode.PUSH, DeliveryMode.PUSH_STREAM])
async def test_without_an_inbox_an_end_nobody_takes_is_tried_again_and_then_given_up(
    mode: DeliveryMode,
) -> None:
    end = replace(reply(0), delivery_mode=mode)
    rig, last = Rig(inbox=False), Rig(inbox=False, max_attempts=1)

    assert await rig.take(end) == Retry()
    given_up = await last.take(end)

    assert given_up == Bury("no socket of its user took the answer", Code.NOT_FOUND)
    assert [(await one.connections.held("u")).frames for one in (rig, last)] == [(), ()]
    assert (await last.stored()).payload == ChatReply(result="all")


@pytest.mark.parametrize("mode", [DeliveryMode.PUSH, DeliveryMode.PUSH_STREAM, DeliveryMode.KEEP])
async def test_without_an_inbox_an_end_somebody_takes_or_nobody_waits_for_is_done(
    mode: DeliveryMode,
) -> None:
    rig = Rig(inbox=False)
    if mode is not DeliveryMode.KEEP:
        await rig.open()

    assert await rig.take(replace(chunks(0, "a"), delivery_mode=mode)) == Ack()
    assert await rig.take(replace(reply(1), delivery_mode=mode)) == Ack()


async def test_without_an_inbox_pieces_nobody_takes_are_not_tried_again() -> None:
    assert await Rig(inbox=False).take(chunks(0, "a")) == Ack()


@pytest.mark.parametrize("mode", [DeliveryMode.KEEP, DeliveryMode.KEEP_STREAM])
async def test_what_is_only_kept_is_not_pushed(mode: DeliveryMode) -> None:
    rig = Rig()
    await rig.open()

    await rig.take(replace(chunks(0, "a"), delivery_mode=mode))
    await rig.take(replace(reply(1), delivery_mode=mode))

    assert rig.sockets.seen == {}


@pytest.mark.parametrize(
    ("default", "user", "kind"),
    [
        (DeliveryMode.KEEP, "u", None),
        (DeliveryMode.PUSH, "u", "CHAT_RESPONSE"),
        (DeliveryMode.PUSH_STREAM, "u", "STREAM_CHUNK"),
        (DeliveryMode.PUSH, "", None),
        (DeliveryMode.PUSH_STREAM, "", None),
    ],
)
async def test_a_mode_nobody_chose_is_the_processes_own_if_a_user_is_named(
    default: DeliveryMode, user: str, kind: str | None
) -> None:
    rig = Rig(mode=default)
    await rig.open()

    await rig.take(replace(reply(0), delivery_mode=DeliveryMode.UNSPECIFIED, user_id=user))

    kinds = [frame["type"] for frame in rig.sockets.seen.get("c1", [])]
    assert kinds == ([kind] if kind else [])


async def test_nothing_is_held_for_nobody() -> None:
    rig = Rig()

    await rig.take(replace(reply(0), delivery_mode=DeliveryMode.PUSH, user_id=""))

    assert rig.connections.size == (0, 0)


async def test_where_no_socket_can_exist_answers_are_kept_all_the_same() -> None:
    rig = Rig(pushes=False)

    assert await rig.take(reply(0)) == Ack()
    assert (await rig.stored()).payload == ChatReply(result="all")


async def test_a_store_that_is_away_for_a_moment_costs_nothing() -> None:
    rig = Rig()
    await rig.open()
    rig.replies.failures = 3

    with captured_logs() as logs:
        assert await rig.take(reply(0)) == Ack()

    assert [record["event"] for record in logs] == [
        "dependency.unavailable",
        "dependency.unavailable",
        "dependency.unavailable",
        "dependency.recovered",
    ]
    assert len(rig.sockets.seen["c1"]) == 1


async def test_a_store_that_stays_away_is_left_to_the_next_delivery_and_spends_none() -> None:
    rig = Rig(patience=0.01)
    rig.replies.failures = 1_000_000

    with captured_logs():
        async with asyncio.timeout(30):
            settlement = await rig.take(reply(0))

    assert settlement == Release()


async def test_taking_an_answer_again_changes_nothing_that_is_kept() -> None:
    rig = Rig()
    for _ in range(2):
        for envelope in (chunks(0, "a"), reply(1)):
            await rig.take(envelope)

    items = [item async for item in rig.replies.stream(REQUEST.reply_key, BEGINNING)]
    assert len(items) == 2


async def test_the_time_from_admission_to_storage_is_measured() -> None:
    rig = Rig()
    admitted = rig.clock.time()
    await rig.clock.advance(3.0)

    await rig.take(replace(reply(0), enqueued_at=admitted))
    await rig.take(replace(chunks(0, "a"), enqueued_at=admitted))

    body = rig.metrics.render()[0].decode()
    assert 'turnline_turn_stage_seconds_sum{stage="total"} 3.0' in body
    assert 'turnline_turn_stage_seconds_count{stage="total"} 1.0' in body


async def test_answering_and_pushing_are_spans_of_the_requests_trace() -> None:
    spans = InMemorySpanExporter()
    rig = Rig(spans=spans)
    await rig.open()

    await rig.take(reply(0))
    await rig.tracing.shutdown(seconds=5.0)

    push, answer = spans.get_finished_spans()
    assert (push.name, answer.name) == ("turn.push", "turn.answer")
    assert answer.context is not None
    assert f"{answer.context.trace_id:032x}" == "a" * 32
    assert push.parent is not None
    assert push.parent.span_id == answer.context.span_id
    attributes = dict(push.attributes or {})
    assert (attributes["turnline.frames"], attributes["turnline.sockets"]) == (1, 1)
