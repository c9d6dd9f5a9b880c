"""What a pushed frame becomes, given what its socket was sent before."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnline.gateway.places import Places
from turnline.gateway.rig import chunk, done, gap, restart
from turnline.protocol import Position
from turnline.push import Frame

# A loaded machine is no reason to fail.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def taken(places: Places, *frames: Frame) -> list[Frame]:
    return [out for frame in frames for out in places.take(frame)]


def test_a_stream_without_faults_passes_unchanged() -> None:
    frames = [chunk(0), chunk(1), done(2)]

    assert taken(Places(), *frames) == frames


def test_a_frame_that_was_sent_before_is_dropped() -> None:
    assert taken(Places(), chunk(0), chunk(1), chunk(0), chunk(1), done(2), done(2)) == [
        chunk(0),
        chunk(1),
        done(2),
    ]


def test_nothing_of_a_turn_comes_behind_its_end() -> None:
    assert taken(Places(), chunk(0), done(1), chunk(5)) == [chunk(0), done(1)]


def test_missing_chunks_are_said() -> None:
    assert taken(Places(), chunk(0), chunk(3), done(6)) == [
        chunk(0),
        gap(1, 2),
        chunk(3),
        gap(4, 5),
        done(6),
    ]


def test_a_socket_that_joins_in_the_middle_is_told_what_it_missed() -> None:
    assert taken(Places(), chunk(2)) == [gap(0, 1), chunk(2)]


def test_an_end_with_the_whole_text_leaves_no_gap() -> None:
    whole = done(3, result="all of it")

    assert taken(Places(), whole) == [whole]


def test_a_later_attempt_begins_with_a_restart() -> None:
    assert taken(Places(), chunk(0), chunk(0, attempt=2)) == [
        chunk(0),
        restart(2),
        chunk(0, attempt=2),
    ]


def test_a_restart_is_said_once() -> None:
    assert taken(Places(), chunk(0), restart(2), restart(2), chunk(0, attempt=2)) == [
        chunk(0),
        restart(2),
        chunk(0, attempt=2),
    ]


def test_chunks_of_an_attempt_that_was_voided_are_dropped() -> None:
    assert taken(Places(), chunk(0, attempt=2), chunk(1)) == [chunk(0, attempt=2)]


def test_a_turn_that_was_given_up_ends_whatever_attempt_its_failure_names() -> None:
    failure = done(0, error="no", attempt=1)

    assert taken(Places(), chunk(4, attempt=3), failure)[-1] == failure


def test_the_reply_of_a_redriven_turn_follows_its_failure() -> None:
    failure, reply = done(1, error="no"), done(1, attempt=2, result="yes")

    assert taken(Places(), chunk(0), failure, failure, reply, reply) == [
        chunk(0),
        failure,
        restart(2),
        reply,
    ]


def test_a_chat_response_comes_once() -> None:
    reply = {"result": "a", "request_id": "r", "type": "CHAT_RESPONSE"}

    assert taken(Places(), reply, reply) == [reply]


def test_turns_do_not_disturb_each_other() -> None:
    frames = [chunk(0), chunk(0, turn="q"), chunk(1), chunk(1, turn="q"), done(2)]

    assert taken(Places(), *frames) == frames


def test_a_rewound_turn_goes_on_from_the_position_asked_for() -> None:
    places = Places()
    taken(places, chunk(0), chunk(1), chunk(2), done(3))

    places.rewind("r", Position(1, 0))

    assert taken(places, chunk(0), chunk(1), chunk(2), done(3)) == [chunk(1), chunk(2), done(3)]


def test_a_gap_the_store_told_of_is_not_told_again() -> None:
    places = Places()
    places.note(gap(0, 4))

    assert taken(places, chunk(5)) == [chunk(5)]


def test_what_a_resume_sent_is_not_pushed_again() -> None:
    places = Places()
    for frame in (chunk(0), chunk(1), done(2)):
        places.note(frame)

    assert taken(places, chunk(1), done(2)) == []


def test_the_position_is_that_of_the_last_frame() -> None:
    places = Places()

    assert places.position("r") is None
    taken(places, chunk(0), chunk(1))
    assert places.position("r") == Position(1, 1)


@pytest.mark.parametrize(
    "frame",
    [
        {"type": "SYSTEM_RESPONSE", "request_id": "r"},
        {"type": "STREAM_CHUNK", "request_id": ["no", "text"], "attempt": 1, "index": 0},
        {"type": "STREAM_CHUNK", "delta": "no place"},
        {"type": "STREAM_CHUNK", "request_id": "r", "attempt": "1", "index": 0},
        {"type": "STREAM_CHUNK", "request_id": "r", "attempt": True, "index": True},
        {"type": ["odd"], "request_id": "r"},
        {"any": "thing"},
    ],
)
def test_frames_without_a_place_pass_as_they_are(frame: Frame) -> None:
    assert taken(Places(), frame, frame) == [frame, frame]


def test_what_an_application_pushed_comes_once() -> None:
    one, other = {"n": 1, "push_id": "a"}, {"n": 1, "push_id": "b"}

    assert taken(Places(), one, other, one, other) == [one, other]


def test_what_is_remembered_is_bounded() -> None:
    places = Places(max_running=4, max_ended=2, max_pushed=3)
    for turn in range(100):
        places.take(chunk(0, turn=f"a{turn}"))
        places.take(done(1, turn=f"b{turn}"))
        places.take({"push_id": f"c{turn}"})

    assert places.size == (4, 2, 3)


@UNTIMED
@given(seed=st.integers(), lost=st.sets(st.integers(0, 11)), again=st.integers(0, 5))
def test_whatever_is_lost_or_repeated_the_client_reads_an_honest_stream(
    seed: int, lost: set[int], again: int
) -> None:
    """Pushes are in order per try, but a try may repeat from anywhere and lose anything."""
    generator = random.Random(seed)
    whole = [chunk(i) for i in range(5)] + [chunk(i, attempt=2) for i in range(6)]
    whole.append(done(6, attempt=2))
    pushed = [frame for at, frame in enumerate(whole) if at not in lost]
    for _ in range(again):
        at = generator.randrange(len(whole))
        pushed += whole[at : at + generator.randrange(4)]
    pushed.append(whole[-1])

    seen = taken(Places(), *pushed)

    check_honest(seen)
    assert sum(frame["done"] for frame in seen) == 1


def check_honest(frames: list[Frame]) -> None:
    """Indices rise by one, gaps say exactly what is missing, later attempts come with a restart."""
    attempt, index = 0, -1
    for frame in frames:
        event = frame.get("event", {}).get("type")
        if event == "restart":
            assert frame["attempt"] > attempt
            attempt, index = frame["attempt"], -1
            continue
        assert attempt in (0, frame["attempt"])
        attempt = frame["attempt"]
        if event == "gap":
            assert frame["event"]["first"] == index + 1
            index = frame["event"]["last"]
        else:
            assert frame["index"] == index + 1
            index += 1
