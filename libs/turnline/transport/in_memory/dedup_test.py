"""The dedup window forgets what it should, and holds no more than it may."""

from turnline.transport.in_memory.dedup import DedupWindow


def test_expired_ids_are_not_held() -> None:
    window = DedupWindow(seconds=10.0, max_ids=1000)
    for number in range(100):
        window.remember(f"id-{number}", now=float(number))
    assert not window.seen("id-0", now=99.0)
    assert window.seen("id-90", now=99.0)
    assert len(window) == 10


def test_past_the_most_ids_the_oldest_is_forgotten_and_it_says_so() -> None:
    window = DedupWindow(seconds=10.0, max_ids=2)
    assert window.remember("first", 0.0)
    assert window.remember("second", 0.0)
    assert not window.remember("third", 0.0)
    assert [window.seen(name, 0.0) for name in ("first", "second", "third")] == [False, True, True]


def test_a_window_of_no_seconds_remembers_nothing() -> None:
    window = DedupWindow(seconds=0.0, max_ids=2)
    assert window.remember("id", 0.0)
    assert not window.seen("id", 0.0)
    assert len(window) == 0
