"""How far a partition is done: the offset that may be committed, and the gaps beside it."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnline.transport.kafka.progress import MAX_SPAN, Progress, count_done

_LARGEST_TEXT = 4096  # what a broker takes by default


def _read(progress: Progress, *offsets: int) -> list[bool]:
    return [progress.read(offset) for offset in offsets]


def test_nothing_is_committed_before_anything_was_read() -> None:
    assert Progress().commit() is None


def test_a_group_without_a_commit_begins_at_the_first_record() -> None:
    progress = Progress()
    _read(progress, 40, 41)
    assert progress.commit() == (40, "")


def test_what_is_done_in_order_moves_the_offset() -> None:
    progress = Progress(10)
    _read(progress, 10, 11)
    progress.finish(10)
    assert progress.commit() == (11, "")


def test_an_unfinished_head_keeps_the_offset_and_not_what_is_done_behind_it() -> None:
    progress = Progress(10)
    _read(progress, 10, 11, 12, 13)
    progress.finish(11)
    progress.finish(13)
    offset, text = progress.commit() or (0, "")
    assert (offset, count_done(text)) == (10, 2)
    assert _read(Progress(offset, text), 10, 11, 12, 13) == [True, False, True, False]


def test_offsets_without_records_are_done() -> None:
    progress = Progress(10)
    _read(progress, 10, 15, 20)
    progress.finish(10)
    assert progress.commit() == (15, "")
    progress.finish(15)
    progress.finish(20)
    assert progress.commit() == (21, "")


def test_finishing_twice_changes_nothing() -> None:
    progress = Progress(0)
    _read(progress, 0, 1, 2)
    progress.finish(1)
    before = progress.commit()
    progress.finish(1)
    assert progress.commit() == before


def test_what_was_done_before_is_known_until_it_is_below_the_offset() -> None:
    first = Progress(0)
    _read(first, *range(6))
    for offset in (1, 2, 5):
        first.finish(offset)
    second = Progress(*(first.commit() or (0, "")))
    _read(second, 0, 1, 2)
    second.finish(0)
    offset, text = second.commit() or (0, "")
    assert offset == 3
    assert _read(Progress(offset, text), 3, 4, 5) == [True, True, False]


@pytest.mark.parametrize(
    "text", ["", "something of a foreign program", "1:no base64!", "2:AA==", "1:"]
)
def test_a_text_that_nobody_here_wrote_says_nothing(text: str) -> None:
    assert count_done(text) == 0
    assert Progress(5, text).read(6) is True


def test_the_text_of_the_widest_span_fits() -> None:
    progress = Progress(0)
    _read(progress, *range(MAX_SPAN))
    for offset in range(1, MAX_SPAN):
        progress.finish(offset)
    offset, text = progress.commit() or (0, "")
    assert (offset, count_done(text)) == (0, MAX_SPAN - 1)
    assert len(text) <= _LARGEST_TEXT


def test_what_does_not_fit_into_the_text_is_left_out() -> None:
    progress = Progress(0)
    _read(progress, *range(40_000))
    for offset in range(1, 40_000):
        progress.finish(offset)
    offset, text = progress.commit() or (0, "")
    assert offset == 0
    assert MAX_SPAN < count_done(text) < 40_000
    assert len(text) <= _LARGEST_TEXT


def test_an_overlong_text_is_read_no_further_than_a_span_can_be() -> None:
    text = "1:" + base64.b64encode(b"\xff" * 100_000).decode()
    assert count_done(text) <= 2 * MAX_SPAN


@given(
    st.lists(st.integers(0, 60), unique=True, min_size=1).map(sorted),
    st.data(),
)
def test_a_new_owner_repeats_what_is_not_done_and_nothing_else(
    offsets: list[int], data: st.DataObject
) -> None:
    done = data.draw(st.sets(st.sampled_from(offsets)))
    progress = Progress(0)
    _read(progress, *offsets)
    for offset in data.draw(st.permutations(sorted(done))):
        progress.finish(offset)
    start, text = progress.commit() or (0, "")
    assert all(offset in done for offset in offsets if offset < start)
    again = Progress(start, text)
    todo = [offset for offset in offsets if offset >= start and again.read(offset)]
    assert todo == [offset for offset in offsets if offset not in done]
