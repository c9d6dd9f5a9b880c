"""What is kept is read as it was, by this release and by others."""

import orjson
import pytest

from turnline.errors import RetryHint
from turnline.protocol import ChatEvent, ChatReply, Chunk, EventType, Failure, TurnRecord
from turnline.store import Outcome, StoredReply, encoding

_FAILURE = Failure(
    code="of_tomorrow",
    message="Später",
    status_code=429,
    retry=RetryHint.AFTER,
    retry_after=0.0,
    field="prompt",
)


@pytest.mark.parametrize(
    "payload", [ChatReply(), ChatReply(result="ü\0", extra={"a": [1]}), _FAILURE]
)
@pytest.mark.parametrize(("attempt", "chunks"), [(0, 0), (3, 17)])
def test_an_end_is_read_as_it_was_written(
    payload: ChatReply | Failure, attempt: int, chunks: int
) -> None:
    reply = StoredReply(
        request_id="r", session_id="s", status_code=207, payload=payload, attempt=attempt,
        chunk_count=chunks,
    )  # fmt: skip

    assert encoding.decode_reply(encoding.encode_reply(reply)) == reply


@pytest.mark.parametrize("payload", [ChatReply(result="x", extra={"result": 1}), _FAILURE])
def test_an_outcome_is_read_as_it_was_written(payload: ChatReply | Failure) -> None:
    outcome = Outcome(payload=payload, status_code=500, attempt=2, fence=2**53, chunk_count=4)

    assert encoding.decode_outcome(b"%d:" % 2**53 + encoding.encode_outcome(outcome)) == outcome


def test_a_cancelled_turn_is_its_failure() -> None:
    outcome = encoding.decode_outcome(b"0:3")

    assert (outcome.status_code, outcome.attempt, outcome.fence) == (499, 3, 0)
    assert isinstance(outcome.payload, Failure)
    assert outcome.payload.code == "turn_cancelled"


def test_a_record_is_read_as_it_was_written() -> None:
    record = TurnRecord(request_id="r", prompt="p", reply="", agent="a", at=1.5, items=({"x": 1},))

    assert encoding.decode_record(encoding.encode_record(record)) == record


@pytest.mark.parametrize("kind", list(EventType))
def test_every_kind_of_event_is_read_as_it_was_written(kind: EventType) -> None:
    event = ChatEvent(
        type=kind, message_id="m", role="r", content="c", tool_call_id="t", name="n",
        data={"type": "mine", "content": "too"},
    )  # fmt: skip
    chunk = Chunk(attempt=2, index=0, event=event)

    assert encoding.decode_chunk(2, 0, encoding.encode_chunk(chunk)) == chunk


def test_an_event_of_a_newer_release_is_a_custom_one() -> None:
    raw = orjson.dumps({"type": "of_tomorrow", "content": "c", "unheard": 1})

    chunk = encoding.decode_chunk(1, 0, raw)

    assert (chunk.event.type, chunk.event.content) == (EventType.CUSTOM, "c")


def test_fields_of_a_newer_release_are_passed_over() -> None:
    raw = orjson.dumps(orjson.loads(encoding.encode_reply(_reply())) | {"unheard": {"of": 1}})

    assert encoding.decode_reply(raw) == _reply()


@pytest.mark.parametrize("bad", [{"x": {1}}, {"x": float("nan")}, {"x": "\ud800"}])
def test_what_is_no_json_is_refused(bad: dict[str, object]) -> None:
    outcome = Outcome(payload=ChatReply(extra=bad), status_code=200, attempt=1, fence=1)

    with pytest.raises(ValueError, match="outcome"):
        encoding.encode_outcome(outcome)


def _reply() -> StoredReply:
    return StoredReply(
        request_id="r", session_id="s", status_code=200, payload=ChatReply(result="x")
    )
