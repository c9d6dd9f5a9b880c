"""The oracle finds each kind of fault, and none where there is none."""

from turnline.testing.conformance.transport.history import Event, What, find_faults


def _sent(*names: str) -> list[Event]:
    return [Event(What.SENT, "s", name) for name in names]


def _handled(name: str, what: What = What.ACKED, attempt: int = 1) -> list[Event]:
    return [Event(What.RECEIVED, "s", name, attempt), Event(what, "s", name, attempt)]


def test_a_sound_history_has_no_fault() -> None:
    events = [
        *_sent("a", "b"),
        *_handled("a", What.RETRIED),
        *_handled("a", What.RELEASED, attempt=2),
        *_handled("a", What.CRASHED, attempt=2),
        *_handled("a", What.BURIED, attempt=3),
        *_handled("b"),
    ]
    assert find_faults(events) == []


def test_what_never_ended_is_lost() -> None:
    assert find_faults([*_sent("a", "b"), *_handled("a")]) == ["lost: s/b"]


def test_what_comes_after_its_end_is_doubled() -> None:
    faults = find_faults([*_sent("a"), *_handled("a"), *_handled("a")])
    assert faults == ["doubled: s/a came after its end"]


def test_what_comes_before_an_earlier_one_is_reordered() -> None:
    faults = find_faults([*_sent("a", "b"), *_handled("b"), *_handled("a")])
    assert faults == ["reordered: s/b came before a"]


def test_what_overtakes_a_retry_is_reordered() -> None:
    events = [*_sent("a", "b"), *_handled("a", What.RETRIED), *_handled("b")]
    assert "reordered: s/b came before a" in find_faults([*events, *_handled("a", attempt=2)])


def test_two_out_at_once_overlap() -> None:
    out = [Event(What.RECEIVED, "s", name, 1) for name in ("a", "b")]
    ends = [Event(What.ACKED, "s", name, 1) for name in ("a", "b")]
    faults = find_faults([*_sent("a", "b"), *out, *ends])
    assert "overlapping: s/b came while a was out" in faults


def test_another_delivery_of_what_is_still_held_overlaps() -> None:
    out = [Event(What.RECEIVED, "s", "a", attempt) for attempt in (1, 1)]
    faults = find_faults([*_sent("a"), *out, Event(What.ACKED, "s", "a", 1)])
    assert faults == ["overlapping: s/a came while a was out"]


def test_a_release_that_spends_an_attempt_is_miscounted() -> None:
    faults = find_faults([*_sent("a"), *_handled("a", What.RELEASED), *_handled("a", attempt=2)])
    assert faults == ["miscounted: s/a came as 2, not 1"]


def test_a_crash_that_spends_none_is_miscounted() -> None:
    faults = find_faults([*_sent("a"), *_handled("a", What.CRASHED), *_handled("a")])
    assert faults == ["miscounted: s/a came as 1, not 2"]
