"""Reading client frames."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnline.errors import Code, InvalidRequestError
from turnline.gateway.frames import (
    ClientFrame,
    check_chat,
    decode_frame,
    failed,
    read_frame,
    request_id_in,
    succeeded,
)

# A loaded machine is no reason to fail.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def read(text: str) -> ClientFrame:
    return read_frame(decode_frame(text), chat_route="chat")


def refusal(text: str) -> InvalidRequestError:
    with pytest.raises(InvalidRequestError) as refused:
        read(text)
    return refused.value


def test_a_frame_names_its_route_id_and_body() -> None:
    frame = read('{"route":"status","request_id":"r-1","body":{"a":1},"stream":true}')

    assert (frame.route, frame.request_id, frame.body) == ("status", "r-1", {"a": 1})
    assert frame.stream is True


def test_a_frame_without_a_route_is_a_chat_frame() -> None:
    frame = read('{"body":{"prompt":"hi","session_id":"s"}}')

    assert (frame.route, frame.request_id, frame.stream) == ("chat", "", None)


def test_a_flat_frame_is_its_own_body() -> None:
    frame = read('{"route":"chat","prompt":"hi","session_id":"s","request_id":"r","body":null}')

    assert frame.body == {"prompt": "hi", "session_id": "s", "request_id": "r"}
    assert frame.request_id == "r"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nope",
        "{",
        '{"prompt":"a}',
        '{"prompt":"\\ud800"}',
        "[" * 5_000,
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        "\0",
        '{"a":1}\0',
        "NaN",
        "{'a':1}",
    ],
)
def test_what_is_no_json_is_refused(text: str) -> None:
    error = refusal(text)

    assert (error.message, error.code) == ("Invalid frame: not JSON", Code.MALFORMED_BODY)


@pytest.mark.parametrize("text", ["[1]", '"text"', "1", "null", "true"])
def test_json_that_is_no_object_is_refused(text: str) -> None:
    assert refusal(text).message == "Invalid frame: must be a JSON object"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"route": 1}, "route"),
        ({"route": 0}, "route"),
        ({"route": []}, "route"),
        ({"route": {}}, "route"),
        ({"request_id": 0}, "request_id"),
        ({"request_id": []}, "request_id"),
        ({"request_id": False}, "request_id"),
        ({"request_id": " "}, "request_id"),
        ({"request_id": "a\0b"}, "request_id"),
        ({"request_id": "x" * 257}, "request_id"),
        ({"stream": "yes"}, "stream"),
        ({"stream": 1}, "stream"),
        ({"body": [1]}, "body"),
        ({"body": "text"}, "body"),
        ({"body": 0}, "body"),
    ],
)
def test_a_field_of_a_wrong_type_is_named(fields: dict[str, Any], field: str) -> None:
    assert refusal(json.dumps({"prompt": "p", "session_id": "s", **fields})).field == field


@pytest.mark.parametrize("frame", [{}, {"route": "chat"}, {"request_id": "r"}, {"body": None}])
def test_a_chat_frame_without_a_body_is_refused(frame: dict[str, Any]) -> None:
    assert refusal(json.dumps(frame)).message == "body is required"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"prompt": "p"}, "session_id is required"),
        ({"prompt": "p", "session_id": ""}, "session_id is required"),
        ({"prompt": "p", "session_id": None}, "session_id is required"),
        (
            {"session_id": "s"},
            "prompt is required unless the request carries a resume block",
        ),
        (
            {"session_id": "s", "prompt": ""},
            "prompt is required unless the request carries a resume block",
        ),
    ],
)
def test_a_chat_body_needs_a_session_and_something_to_answer(
    body: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        check_chat(body)

    assert refused.value.message == message


def test_a_resume_block_is_something_to_answer() -> None:
    check_chat({"session_id": "s", "resume": {"decisions": []}})


def test_the_id_of_a_wrong_frame_is_found_if_it_is_one() -> None:
    assert request_id_in({"request_id": "r", "route": 5}) == "r"
    assert request_id_in({"request_id": 5}) == ""
    assert request_id_in({}) == ""


def test_a_handlers_own_fields_do_not_hide_what_kind_of_frame_it_is() -> None:
    frame = succeeded({"type": "CHAT_RESPONSE", "status": "PARTIAL", "up": True}, request_id="r")

    assert frame == {
        "status": "PARTIAL",
        "up": True,
        "type": "SYSTEM_RESPONSE",
        "request_id": "r",
    }


def test_a_failed_frame_says_whether_to_try_again() -> None:
    frame = failed(InvalidRequestError("no", field="body"), request_id="r")

    assert frame == {
        "status": "FAILED",
        "message": "no",
        "error": "no",
        "code": "invalid_request",
        "retry": "never",
        "field": "body",
        "request_id": "r",
        "type": "SYSTEM_RESPONSE",
    }


@UNTIMED
@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        read(text)
    except InvalidRequestError as error:
        assert error.message


_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["route", "request_id", "body", "stream", "prompt", "session_id"]), inner
    ),
    max_leaves=8,
)


@UNTIMED
@given(_JSON)
def test_no_json_breaks_the_reader(value: object) -> None:
    try:
        frame = read(json.dumps(value))
    except InvalidRequestError as error:
        assert error.message
    else:
        assert isinstance(frame.route, str)
        assert isinstance(frame.body, dict)
