"""What callers ask for in headers."""

import pytest

from turnline.errors import InvalidRequestError
from turnline.protocol import BEGINNING, Position
from turnline.request_handler.preferences import (
    ReplyMode,
    read_headers,
    read_preference,
    stream_position,
    turn_name,
    wait_seconds,
    wants_event_stream,
)


def test_no_header_leaves_the_mode_to_the_setting() -> None:
    assert read_preference(accept="*/*", prefer="").mode is None


def test_accepting_event_streams_asks_for_one() -> None:
    preference = read_preference(accept="text/event-stream", prefer="respond-async")

    assert preference.mode is ReplyMode.STREAM


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("text/event-stream", True),
        ("application/json, Text/Event-Stream; q=0.5", True),
        ("text/event-stream;q=0", False),
        ("text/event-stream; q=0.000", False),
        ("text/event-streams", False),
        ("*/*", False),
        ("", False),
    ],
)
def test_an_event_stream_is_wanted_only_when_its_type_is_listed(accept: str, wanted: bool) -> None:
    assert wants_event_stream(accept) is wanted


@pytest.mark.parametrize(
    ("prefer", "wait", "applied"),
    [
        ("respond-async", 0.0, "respond-async"),
        ("Respond-Async, wait=10", 10.0, "respond-async, wait=10"),
        ('wait="7", respond-async; foo=bar', 7.0, "respond-async, wait=7"),
        ("respond-async, wait=soon", 0.0, "respond-async"),
        ("respond-async, wait=-3", 0.0, "respond-async"),
        ("respond-async, wait=٣", 0.0, "respond-async"),
        ("respond-async, wait=99999999999999999999", 0.0, "respond-async"),
        ("respond-async, wait=1, wait=9", 1.0, "respond-async, wait=1"),
    ],
)
def test_respond_async_is_read_with_its_wait(prefer: str, wait: float, applied: str) -> None:
    preference = read_preference(accept="*/*", prefer=prefer)

    assert (preference.mode, preference.wait, preference.applied) == (
        ReplyMode.ASYNC,
        wait,
        applied,
    )


def test_other_preferences_are_ignored() -> None:
    preference = read_preference(accept="", prefer="return=minimal, wait=5")

    assert (preference.mode, preference.applied) == (None, "")


@pytest.mark.parametrize(
    ("header", "body", "name"),
    [("", "", ""), ("", "b", "b"), ("k", "", "k"), ('"k"', "k", "k"), ("k", "k", "k")],
)
def test_a_turn_is_named_by_header_or_body(header: str, body: str, name: str) -> None:
    assert turn_name(header=header, body=body) == name


@pytest.mark.parametrize(
    ("header", "body"), [("k", "b"), ('""', ""), ("x" * 300, ""), ("\x00", "")]
)
def test_a_contradicting_or_impossible_name_is_refused(header: str, body: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        turn_name(header=header, body=body)

    assert refused.value.field == "Idempotency-Key"


def test_an_empty_position_is_the_beginning() -> None:
    assert stream_position("") == BEGINNING


def test_a_position_given_out_is_read_back() -> None:
    assert stream_position(str(Position(2, 17))) == Position(2, 17)


@pytest.mark.parametrize("text", ["x", "1", "-1-1", "1-1-1", "9" * 30 + "-1", "1-٣"])
def test_anything_else_is_no_position(text: str) -> None:
    with pytest.raises(InvalidRequestError):
        stream_position(text)


@pytest.mark.parametrize(("text", "seconds"), [("", 0.0), ("0", 0.0), ("2", 2.0), ("0.25", 0.25)])
def test_a_wait_is_a_decimal_number_of_seconds(text: str, seconds: float) -> None:
    assert wait_seconds(text) == seconds


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "1e3", "soon", "1" * 20, "٣", " 1"])
def test_any_other_wait_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError):
        wait_seconds(text)


def test_values_of_a_repeated_header_are_joined() -> None:
    raw = [(b"prefer", b"respond-async"), (b"host", b"h"), (b"prefer", b"wait=3")]

    assert read_headers(raw) == {"prefer": "respond-async, wait=3", "host": "h"}
