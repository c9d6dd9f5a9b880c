"""What a terminal shows of an answer, from the frames that make it."""

from typing import Any

import pytest

from turnline.cli.answer import Answer


class Screen:
    """Remembers what was shown."""

    def __init__(self) -> None:
        self.text = ""
        self.notes: list[str] = []

    def show(self, piece: str) -> None:
        self.text += piece


@pytest.fixture
def screen() -> Screen:
    return Screen()


@pytest.fixture
def answer(screen: Screen) -> Answer:
    return Answer(request_id="r1", text=screen.show, note=screen.notes.append)


def chunk(index: int, text: str, *, attempt: int = 1, **more: object) -> dict[str, Any]:
    event = {"type": "text_delta", "message_id": "m", "content": text}
    return {
        "type": "STREAM_CHUNK",
        "request_id": "r1",
        "delta": text,
        "event": event,
        "done": False,
        "attempt": attempt,
        "index": index,
        **more,
    }


def end(index: int, *, attempt: int = 1, **more: object) -> dict[str, Any]:
    ids = {"type": "STREAM_CHUNK", "request_id": "r1"}
    return {**ids, "done": True, "attempt": attempt, "index": index, **more}


def take(answer: Answer, *frames: dict[str, Any]) -> None:
    for frame in frames:
        answer.take(frame)


def test_pieces_are_shown_as_they_come_until_the_end(answer: Answer, screen: Screen) -> None:
    take(answer, {"type": "CHAT_QUEUED", "request_id": "r1"}, chunk(0, "a"), chunk(1, "b"), end(2))

    assert (answer.queued, answer.done, answer.failed) == (True, True, False)
    assert (screen.text, screen.notes) == ("ab", [])


def test_an_answer_without_pieces_is_shown_from_its_end(answer: Answer, screen: Screen) -> None:
    take(answer, end(0, result="whole"))

    assert screen.text == "whole"


def test_frames_of_other_turns_are_passed_over(answer: Answer, screen: Screen) -> None:
    take(answer, {**chunk(0, "x"), "request_id": "r2"}, {**end(0), "request_id": "r2"})

    assert (screen.text, answer.done) == ("", False)


def test_a_refusal_ends_it(answer: Answer, screen: Screen) -> None:
    refusal = {"type": "SYSTEM_RESPONSE", "status": "FAILED", "message": "no", "request_id": "r1"}
    take(answer, refusal)

    assert (answer.done, answer.failed, screen.notes) == (True, True, ["no"])


def test_an_error_at_the_end_is_told(answer: Answer, screen: Screen) -> None:
    take(answer, chunk(0, "a"), end(1, error="it broke"))

    assert (answer.failed, screen.text, screen.notes) == (True, "a", ["it broke"])


def test_a_new_attempt_is_told_and_counts_from_its_start(answer: Answer, screen: Screen) -> None:
    restart = {**chunk(0, ""), "event": {"type": "restart", "attempt": 2}, "attempt": 2}
    del restart["delta"], restart["index"]
    take(answer, chunk(0, "a"), restart, chunk(0, "b", attempt=2), chunk(1, "x"))

    assert screen.notes == ["the answer starts again"]
    assert screen.text == "ab"
    assert answer.position == "2-0"


def test_a_gap_is_told_and_the_position_is_behind_it(answer: Answer, screen: Screen) -> None:
    gap = {**chunk(0, ""), "event": {"type": "gap", "first": 1, "last": 3}}
    del gap["delta"], gap["index"]
    take(answer, chunk(0, "a"), gap, chunk(4, "e"))

    assert (screen.text, screen.notes) == ("ae", ["part of the answer was missed"])
    assert answer.position == "1-4"


def test_a_resume_after_a_cut_shows_every_piece_once_and_in_order(
    answer: Answer, screen: Screen
) -> None:
    take(answer, chunk(0, "a"), chunk(1, "b"))
    assert answer.position == "1-1"
    answer.resuming = True

    resumed = {"type": "SYSTEM_RESPONSE", "state": "RESUMING", "request_id": "r1"}
    take(answer, chunk(3, "d"), resumed, chunk(2, "c"), chunk(3, "d"), chunk(3, "d"), end(4))

    assert (screen.text, answer.done) == ("abcd", True)


def test_nothing_was_shown_means_no_position(answer: Answer) -> None:
    assert answer.position == ""
