"""Frames that are larger than API Gateway takes."""

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from turnline.aws.frame_parts import MAX_BYTES, parts_of


def test_a_frame_that_fits_is_left_alone() -> None:
    frame = {"result": "x", "type": "CHAT_RESPONSE"}
    assert parts_of(frame) == [frame]


def test_the_text_of_a_larger_one_is_cut_and_whole_when_joined() -> None:
    frame = {"result": "añ\n" * 70_000, "request_id": "r", "type": "CHAT_RESPONSE"}
    parts = parts_of(frame)

    assert "".join(part["result"] for part in parts) == frame["result"]
    assert [part["part"] for part in parts] == list(range(len(parts)))
    assert {part["parts"] for part in parts} == {len(parts)}
    assert {(part["request_id"], part["type"]) for part in parts} == {("r", "CHAT_RESPONSE")}
    assert max(len(orjson.dumps(part)) for part in parts) <= MAX_BYTES


def test_only_the_last_part_of_a_streams_end_is_its_end() -> None:
    parts = parts_of({"done": True, "result": "x" * 300_000, "type": "STREAM_CHUNK"})
    assert [part["done"] for part in parts] == [False, False, True]


def test_what_has_no_text_to_cut_is_left_alone() -> None:
    frame = {"event": {"content": ["x" * 200_000]}, "type": "STREAM_CHUNK"}
    assert parts_of(frame) == [frame]


@settings(deadline=None)
@given(text=st.text(max_size=400), limit=st.integers(min_value=20, max_value=200))
def test_no_text_loses_a_character(text: str, limit: int) -> None:
    parts = parts_of({"result": text}, max_bytes=8 * 1024 + limit)
    assert "".join(part["result"] for part in parts) == text
