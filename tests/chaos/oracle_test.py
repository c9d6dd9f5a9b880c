"""The judge itself: each kind of fault is found where it is, and none where there is none."""

from typing import Any

from chaos.oracle import History, Moment, Run, faults_of, socket_faults
from turnline.protocol import ChatReply, Failure
from turnline.store import StoredReply

Frame = dict[str, Any]


def reply(text: str = "hello") -> StoredReply:
    return StoredReply(
        request_id="r", session_id="s", status_code=200, payload=ChatReply(result=text)
    )


def failure() -> StoredReply:
    payload = Failure(code="agent_failed", message="", status_code=500)
    return StoredReply(request_id="r", session_id="s", status_code=500, payload=payload)


def whole_history() -> History:
    """One turn, answered once, with nothing wrong."""
    return History(
        accepted=[("s", "r")],
        runs=[Run("s", "r", 1, 2)],
        replies={"r": reply()},
        histories={"s": ["r"]},
        starts=[Moment("r", 1.0)],
        commits=[Moment("r", 2.0)],
        readings={"r": [reply(), reply()]},
    )


def piece(index: int, *, attempt: int = 1, **more: object) -> Frame:
    event = {"type": "text_delta"}
    frame = {"request_id": "r", "type": "STREAM_CHUNK", "done": False, "event": event}
    return {**frame, "attempt": attempt, "index": index, **more}


def said(kind: str, *, attempt: int = 1, **fields: int) -> Frame:
    frame = piece(0, attempt=attempt, event={"type": kind, **fields})
    del frame["index"]
    return frame


def done(index: int, *, attempt: int = 1, **more: object) -> Frame:
    frame = {"request_id": "r", "type": "STREAM_CHUNK", "done": True, "index": index}
    return {**frame, "attempt": attempt, **more}


def resuming(after: str) -> Frame:
    return {
        "request_id": "r",
        "type": "SYSTEM_RESPONSE",
        "status": "SUCCESS",
        "state": "RESUMING",
        "after": after,
    }


QUEUED = {"request_id": "r", "type": "CHAT_QUEUED"}
ANSWER = {"request_id": "r", "type": "CHAT_RESPONSE", "result": "hello"}
FAILED = {"request_id": "r", "type": "CHAT_RESPONSE", "error": "no"}


def test_a_whole_history_has_no_fault() -> None:
    assert faults_of(whole_history()) == []


def test_a_turn_without_an_answer_is_found() -> None:
    history = whole_history()
    history.accepted.append(("s", "lost"))

    assert faults_of(history) == ["lost was accepted and never answered"]


def test_a_turn_committed_twice_is_found() -> None:
    history = whole_history()
    history.commits.append(Moment("r", 3.0))

    assert faults_of(history) == ["r was committed more than once"]


def test_a_turn_run_after_its_commit_is_found_and_one_before_is_not() -> None:
    history = whole_history()
    history.starts += [Moment("r", 1.5), Moment("r", 2.25)]

    assert faults_of(history) == ["r was run 0.250 s after its end"]


def test_an_answer_that_changes_is_found() -> None:
    history = whole_history()
    history.readings["r"].append(reply("other"))

    assert faults_of(history) == [
        "r was answered in different ways: [(200, 'hello'), (200, 'other')]"
    ]


def test_a_failure_that_stands_in_the_history_is_found() -> None:
    history = whole_history()
    history.replies["r"] = failure()

    assert faults_of(history) == ["r: the answer and the history disagree"]


def test_runs_of_a_session_that_overlap_are_found() -> None:
    history = whole_history()
    history.runs = [Run("s", "r", 1, 4), Run("s", "q", 3, 5), Run("t", "p", 2, 6)]

    assert faults_of(history) == ["two runs of s overlapped"]


def test_turns_out_of_order_are_found() -> None:
    history = whole_history()
    history.accepted.append(("s", "q"))
    history.replies["q"] = reply()
    history.histories["s"] = ["q", "r"]

    assert faults_of(history) == ["s holds ['q', 'r'], accepted in the order ['r', 'q']"]


def test_what_a_caller_complains_of_is_a_fault() -> None:
    history = whole_history()
    history.complaints.append("waited in vain")

    assert faults_of(history) == ["waited in vain"]


def test_frames_in_order_have_no_fault() -> None:
    frames = [QUEUED, piece(0), piece(1), said("restart", attempt=2), piece(0, attempt=2)]

    assert socket_faults([*frames, done(1, attempt=2)]) == []
    assert socket_faults([piece(0), said("gap", first=1, last=3), piece(4), done(5)]) == []
    assert socket_faults([piece(4, first_index=0), done(5)]) == []
    assert socket_faults([piece(0), done(7, result="all of it")]) == []
    assert socket_faults([piece(0), piece(1), resuming("1-0"), piece(1), done(2)]) == []
    assert socket_faults([ANSWER, QUEUED, ANSWER]) == []
    assert socket_faults([FAILED, ANSWER]) == []


def test_a_gap_nobody_speaks_of_is_found() -> None:
    assert socket_faults([piece(0), piece(2), done(3)]) == ["r: piece 2 follows piece 0"]
    assert socket_faults([piece(3)]) == ["r: piece 3 follows piece -1"]
    assert socket_faults([piece(0), done(3)]) == ["r: the end is 3, after piece 0"]


def test_a_piece_that_comes_twice_is_found() -> None:
    assert socket_faults([piece(0), piece(0)]) == ["r: piece 0 follows piece 0"]


def test_a_piece_behind_the_end_is_found() -> None:
    assert socket_faults([piece(0), done(1), piece(1)]) == ["r: a piece came after the end"]


def test_an_attempt_that_begins_unsaid_is_found() -> None:
    assert socket_faults([piece(0), piece(1, attempt=2)]) == [
        "r: attempt 2 follows 1, which is not said"
    ]


def test_a_second_end_is_found() -> None:
    assert socket_faults([ANSWER, ANSWER]) == ["r: a second end"]
    assert socket_faults([piece(0), done(1), done(1)]) == ["r: a second end"]
