"""The judge of pushed notes says what is wrong, and nothing else."""

import random
from collections import Counter

import pytest

from chaos.processes.pushes import PARTS, Pusher


def faults_of(*parts: int, user: str = "u1", most: int = 1) -> list[str]:
    """Judge one socket of `u1` that brought these parts of note 7."""
    pusher = Pusher(list, random.Random(0), most=Counter({7: most}))
    return pusher.faults("u1", [{"push_id": "p", **pusher.note(user, 7, part)} for part in parts])


@pytest.mark.parametrize("parts", [(0, 1, 2), (), (1, 2), (0, 1)])
def test_a_note_that_came_whole_or_was_cut_by_a_socket_is_fine(parts: tuple[int, ...]) -> None:
    assert faults_of(*parts) == []


def test_a_note_may_come_as_often_as_it_may_have_been_sent() -> None:
    whole = range(PARTS)

    assert faults_of(*whole, *whole, most=2) == []
    assert faults_of(0, *whole, most=2) == []
    assert faults_of(*whole, *whole) == [f"note 7 came as {[*whole, *whole]}, in order 1 times"]


@pytest.mark.parametrize("parts", [(1, 0, 2), (0, 2), (2, 1), (2, 2)])
def test_parts_in_another_order_or_again_are_a_fault(parts: tuple[int, ...]) -> None:
    assert faults_of(*parts) == [f"note 7 came as {list(parts)}, in order 1 times"]


def test_a_part_that_cannot_be_known_again_is_a_fault() -> None:
    pusher = Pusher(list, random.Random(0), most=Counter({8: 1}))
    named = pusher.note("u1", 8, 0)

    assert pusher.faults("u1", [named]) == []
    assert len(pusher.faults("u1", [{**named, "push_id": ""}])) == 1


def test_a_note_to_somebody_else_is_a_fault() -> None:
    assert len(faults_of(0, user="u2")) == 1


def test_the_notes_of_another_application_are_not_judged() -> None:
    other, pusher = (Pusher(list, random.Random(0)) for _ in range(2))

    assert pusher.faults("u1", [other.note("u1", 7, 1)]) == []
