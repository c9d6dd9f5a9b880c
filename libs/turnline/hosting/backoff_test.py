"""Pauses grow, are capped, and are spread."""

import pytest

from turnline.hosting import Backoff


def longest(_: float, high: float) -> float:
    return high


def shortest(low: float, _: float) -> float:
    return low


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 0.5), (2, 1.0), (3, 2.0), (4, 4.0)])
def test_each_pause_is_twice_the_one_before(attempt: int, seconds: float) -> None:
    assert Backoff(base=0.5, uniform=longest).pause(attempt) == seconds


def test_jitter_takes_at_most_half_off() -> None:
    assert Backoff(base=0.5, uniform=shortest).pause(2) == 0.5


@pytest.mark.parametrize("attempt", [6, 1_000, 10**9])
def test_no_pause_is_longer_than_the_cap(attempt: int) -> None:
    assert Backoff(base=1.0, cap=20.0, uniform=longest).pause(attempt) == 20.0


def test_no_base_means_at_once() -> None:
    assert Backoff(base=0.0).pause(7) == 0.0
