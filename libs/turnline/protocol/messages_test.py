"""Values as messages: what the codec's own tests do not reach."""

from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from turnline.errors import InvalidRequestError
from turnline.protocol import ChatRequest
from turnline.protocol.messages import (
    read_duration,
    read_event,
    read_failure,
    read_request,
    read_time,
    write_duration,
    write_request,
    write_time,
)
from turnline.v1 import chat_pb2, chunk_pb2, failure_pb2


def through_the_wire(request: ChatRequest) -> ChatRequest:
    message = chat_pb2.ChatRequest()
    write_request(request, message)
    return read_request(chat_pb2.ChatRequest.FromString(message.SerializeToString()))


@pytest.mark.parametrize("seconds", [0.0, 1.0, 0.000000001, 1_790_000_000.123456, 253402300799.5])
def test_a_time_survives_the_wire(seconds: float) -> None:
    message = Timestamp()

    write_time(seconds, message)

    assert read_time(message, field="at") == seconds


def test_a_time_just_below_a_second_is_rounded_into_it() -> None:
    message = Timestamp()

    write_time(1.9999999999, message)

    assert (message.seconds, message.nanos) == (2, 0)


@pytest.mark.parametrize("seconds", [-1.0, float("inf"), float("nan"), 253402300800.0])
def test_a_number_that_is_no_time_is_not_written(seconds: float) -> None:
    with pytest.raises(ValueError, match="no time between"):
        write_time(seconds, Timestamp())
    with pytest.raises(ValueError, match="no time span"):
        write_duration(seconds, Duration())


def test_a_span_below_zero_is_not_read() -> None:
    with pytest.raises(InvalidRequestError, match="retry_after is out of range"):
        read_duration(Duration(seconds=-1), field="retry_after")


@pytest.mark.parametrize(
    "resume",
    [
        {"decisions": []},
        {"run_id": "", "decisions": []},
        {"run_id": 5, "decisions": "all"},
        {"decisions": [{"id": "d", "status": "perhaps", "message": None}, {}]},
        {"decisions": [5]},
        {"decisions": [{"id": "d", "payload": None}], "note": {"a": 1}},
    ],
)
def test_a_resume_block_of_any_shape_loses_nothing(resume: dict[str, Any]) -> None:
    assert through_the_wire(ChatRequest(resume=resume)).resume == resume


@pytest.mark.parametrize(
    "schedule",
    [{}, {"at": "x", "cron": None}, {"session_mode": "other"}, {"timezone": 5, "more": [1]}],
)
def test_a_schedule_block_of_any_shape_loses_nothing(schedule: dict[str, Any]) -> None:
    assert through_the_wire(ChatRequest(schedule=schedule)).schedule == schedule


def test_a_choice_of_a_newer_version_is_shown_and_not_taken_for_none() -> None:
    message = chat_pb2.ChatRequest()
    message.resume.decisions.add(id="d", status=9)

    resume = read_request(message).resume

    assert resume == {"decisions": [{"id": "d", "status": "status_9"}]}


@pytest.mark.parametrize("status_code", [0, 200, 399, 600])
def test_a_failure_without_a_failure_status_is_a_500(status_code: int) -> None:
    assert read_failure(failure_pb2.Failure(code="x", status_code=status_code)).status_code == 500


def test_an_event_without_a_type_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="event has no type"):
        read_event(chunk_pb2.ChatEvent(content="x"))
