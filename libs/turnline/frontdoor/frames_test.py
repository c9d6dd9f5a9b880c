"""What clients see of replies, failures and streams."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnline.errors import AgentFailedError, QueueFullError
from turnline.frontdoor import StreamFrames, chat_response_frame, error_detail, reply_body
from turnline.protocol import BEGINNING, ChatEvent, ChatReply, Chunk, EventType, Failure, Position
from turnline.store import Gap, StoredReply, StreamItem


def chunk(index: int, *, attempt: int = 1, type: EventType = EventType.TEXT_DELTA) -> Chunk:
    return Chunk(attempt=attempt, index=index, event=ChatEvent(type=type, content=f"t{index}"))


def reply(
    payload: ChatReply | Failure | None = None, *, attempt: int = 1, chunk_count: int = 0
) -> StoredReply:
    return StoredReply(
        request_id="r1",
        session_id="s1",
        status_code=200,
        payload=payload or ChatReply(result="all"),
        attempt=attempt,
        chunk_count=chunk_count,
    )


def shown(items: Sequence[StreamItem], after: Position = BEGINNING) -> list[dict[str, Any]]:
    frames = StreamFrames(session_id="s1", request_id="r1", after=after)
    return [frame for item in items for _, frame in frames.frames(item)]


def test_a_chunk_is_the_guides_frame_with_ids_and_place() -> None:
    [frame] = shown([chunk(0)])

    assert frame == {
        "delta": "t0",
        "event": {"type": "text_delta", "content": "t0"},
        "done": False,
        "session_id": "s1",
        "request_id": "r1",
        "attempt": 1,
        "index": 0,
    }


def test_only_text_has_a_delta() -> None:
    [frame] = shown([chunk(0, type=EventType.REASONING_DELTA)])

    assert "delta" not in frame


def test_a_reader_who_saw_every_chunk_is_not_sent_the_text_again() -> None:
    frames = shown([chunk(0), chunk(1), reply(chunk_count=2)])

    assert frames[-1] == {
        "done": True,
        "status_code": 200,
        "session_id": "s1",
        "request_id": "r1",
        "attempt": 1,
        "index": 2,
    }


@pytest.mark.parametrize(
    ("items", "after"),
    [
        ([reply()], BEGINNING),
        ([chunk(0), reply(chunk_count=2)], BEGINNING),
        ([Gap(attempt=1, first=0, last=0), chunk(1), reply(chunk_count=2)], BEGINNING),
        ([reply(chunk_count=2)], Position(1, 0)),
        ([chunk(0), reply(attempt=2, chunk_count=1)], BEGINNING),
    ],
)
def test_a_reader_who_cannot_have_the_text_from_chunks_gets_it_at_the_end(
    items: Sequence[StreamItem], after: Position
) -> None:
    assert shown(items, after)[-1]["result"] == "all"


def test_a_reader_who_resumes_after_the_last_chunk_is_not_sent_the_text() -> None:
    assert "result" not in shown([reply(chunk_count=2)], Position(1, 1))[-1]


def test_a_new_attempt_is_announced_before_its_first_frame() -> None:
    frames = shown([chunk(0), chunk(0, attempt=2), reply(attempt=2, chunk_count=1)])

    assert frames[1]["event"] == {"type": "restart", "attempt": 2}
    assert "result" not in frames[-1]


def test_a_first_attempt_that_is_not_number_one_is_no_restart() -> None:
    frames = shown([chunk(0, attempt=3)])

    assert [frame["event"]["type"] for frame in frames] == ["text_delta"]


def test_a_gap_before_a_restart_is_forgotten_with_its_attempt() -> None:
    items: list[StreamItem] = [
        Gap(attempt=1, first=0, last=4),
        chunk(0, attempt=2),
        reply(attempt=2, chunk_count=1),
    ]

    assert "result" not in shown(items)[-1]


def test_positions_let_a_reader_resume_behind_each_frame() -> None:
    frames = StreamFrames(session_id="s1", request_id="r1", after=BEGINNING)
    items: list[StreamItem] = [chunk(0), Gap(attempt=1, first=1, last=3), chunk(0, attempt=2)]

    positions = [at for item in items for at, _ in frames.frames(item)]

    assert positions == [Position(1, 0), Position(1, 3), Position(2, -1), Position(2, 0)]
    assert frames.position == Position(2, 0)


def test_a_failure_ends_a_stream_with_its_detail() -> None:
    failure = Failure.from_error(AgentFailedError("broken"))

    last = shown([chunk(0), reply(failure)])[-1]

    assert (last["done"], last["error"], last["code"]) == (True, "broken", "agent_failed")


@settings(deadline=None)
@given(
    cut=st.integers(min_value=-1, max_value=9),
    total=st.integers(min_value=1, max_value=10),
)
def test_wherever_a_reader_resumes_it_ends_with_the_whole_text(cut: int, total: int) -> None:
    cut = min(cut, total - 1)
    chunks = [chunk(index) for index in range(total)]
    before = shown(chunks[: cut + 1])
    after = Position(1, cut) if cut >= 0 else BEGINNING

    rest = shown([*chunks[cut + 1 :], reply(chunk_count=total)], after)

    text = "".join(frame.get("delta", "") for frame in [*before, *rest])
    assert text == "".join(f"t{index}" for index in range(total))
    assert [frame["done"] for frame in [*before, *rest]].count(True) == 1


def test_what_an_agent_adds_does_not_replace_what_the_product_says() -> None:
    extra = {"done": False, "request_id": "other", "status": "PAUSED", "type": "x"}
    paused = reply(ChatReply(result="all", extra=extra))

    for body in (reply_body(paused), shown([paused])[-1], chat_response_frame(paused)):
        assert (body["request_id"], body["status"]) == ("r1", "PAUSED")
    assert shown([paused])[-1]["done"] is True
    assert chat_response_frame(paused)["type"] == "CHAT_RESPONSE"


def test_a_reply_is_the_guides_body_with_its_request_id() -> None:
    assert reply_body(reply()) == {"result": "all", "session_id": "s1", "request_id": "r1"}


def test_a_failure_is_a_detail() -> None:
    full = QueueFullError("full", scope="session", retry_after=2.5)

    assert reply_body(reply(Failure.from_error(full))) == {
        "detail": {
            "error": "full",
            "code": "session_queue_full",
            "retry": "after",
            "retry_after": 2.5,
            "session_id": "s1",
            "request_id": "r1",
        }
    }


def test_a_detail_holds_only_what_is_known() -> None:
    failure = Failure.from_error(AgentFailedError("broken"))

    assert error_detail(failure) == {"error": "broken", "code": "agent_failed", "retry": "never"}
