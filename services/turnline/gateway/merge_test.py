"""Merging what waits for a slow client: the client reads the same."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnline.gateway.merge import MAX_MERGED_CHARACTERS, merge_adjacent
from turnline.push import Frame

# A loaded machine is no reason to fail.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def chunk(index: int, text: str, *, message_id: str = "m", **fields: object) -> Frame:
    event = {"type": "text_delta", "message_id": message_id, "content": text}
    frame = {"delta": text, "event": event, "done": False, "request_id": "r", "attempt": 1}
    return {**frame, "index": index, "type": "STREAM_CHUNK", **fields}


def split(frame: Frame, texts: dict[tuple[Any, ...], str]) -> list[Frame]:
    """Take a merged frame apart again, given the text of each place."""
    if "first_index" not in frame:
        return [frame]
    parts = []
    for index in range(frame["first_index"], frame["index"] + 1):
        text = texts[frame["request_id"], frame["attempt"], index]
        event = {**frame["event"], "content": text}
        part = {**frame, "delta": text, "event": event, "index": index}
        del part["first_index"]
        parts.append(part)
    assert "".join(part["delta"] for part in parts) == frame["delta"]
    return parts


@st.composite
def streams(draw: st.DrawFn) -> list[Frame]:
    """Frames of up to three interleaved turns as a responder pushes them, some lost."""
    frames: list[Frame] = []
    places: dict[tuple[str, int], int] = {}
    for _ in range(draw(st.integers(0, 40))):
        turn, attempt = draw(st.sampled_from("abc")), draw(st.integers(1, 2))
        index = places.get((turn, attempt), 0) + draw(st.sampled_from([0, 0, 0, 0, 1]))
        places[turn, attempt] = index + 1
        kind = draw(st.sampled_from(["text", "text", "text", "text", "tool", "done", "other"]))
        base = {"request_id": turn, "attempt": attempt}
        if kind == "text":
            message = draw(st.sampled_from(["m", "m", "m", "n"]))
            frames.append(chunk(index, draw(st.text(max_size=5)), message_id=message, **base))
        elif kind == "tool":
            event = {"type": "tool_call_start", "name": "t"}
            frames.append({"event": event, "done": False, "index": index, **base})
        elif kind == "done":
            frames.append({"done": True, "index": index, **base})
        else:
            frames.append({"type": "SYSTEM_RESPONSE", "status": "SUCCESS"})
    return frames


@UNTIMED
@given(streams())
def test_merging_loses_changes_and_reorders_nothing(frames: list[Frame]) -> None:
    texts = {
        (frame["request_id"], frame["attempt"], frame["index"]): frame["delta"]
        for frame in frames
        if "delta" in frame
    }

    merged = merge_adjacent(frames)

    assert [part for frame in merged for part in split(frame, texts)] == frames


@UNTIMED
@given(streams(), st.integers(0, 40))
def test_merging_in_two_steps_is_merging_at_once(frames: list[Frame], cut: int) -> None:
    in_steps = merge_adjacent([*merge_adjacent(frames[:cut]), *merge_adjacent(frames[cut:])])

    assert in_steps == merge_adjacent(frames)


def test_a_run_of_text_becomes_one_frame() -> None:
    merged = merge_adjacent([chunk(3, "a"), chunk(4, "b"), chunk(5, "c")])

    assert merged == [chunk(5, "abc", first_index=3)]


def test_frames_that_wait_are_not_changed_themselves() -> None:
    frames = [chunk(0, "a"), chunk(1, "b")]

    merge_adjacent(frames)

    assert frames == [chunk(0, "a"), chunk(1, "b")]


def test_a_merged_frame_does_not_grow_without_end() -> None:
    merged = merge_adjacent(chunk(index, "x" * 1_000) for index in range(100))

    assert 1 < len(merged) < 100
    assert max(len(frame["delta"]) for frame in merged) <= MAX_MERGED_CHARACTERS


def test_chunks_with_data_of_their_own_stay_apart() -> None:
    first, second = chunk(0, "a"), chunk(1, "b")
    second["event"]["lang"] = "en"

    assert merge_adjacent([first, second]) == [first, second]
