"""Paused runs in a session's state: kept, bounded, resumed once by their own agent."""

from typing import Any

import pytest

from turnline.agent import FatalAgentError, Turn
from turnline.agent.pauses import MAX_PAUSED_RUNS, STATE_KEY, pause, resumption

APPROVED = [{"id": "c1", "status": "approved"}]


def a_turn(request_id: str, state: dict[str, Any], **resume: object) -> Turn:
    return Turn(
        request_id=request_id, session_id="s1", prompt="", state=state, resume=resume or None
    )


def state_with_paused(*run_ids: str) -> dict[str, Any]:
    state: dict[str, Any] = {"own": 1}
    for run_id in run_ids:
        pause(a_turn(run_id, state), agent="helper", saved=f"saved {run_id}", interruptions=[])
    return state


def test_a_run_is_resumed_with_what_was_saved_and_then_forgotten() -> None:
    state = state_with_paused("r1", "r2")

    resumed = resumption(a_turn("r3", state, run_id="r1", decisions=APPROVED), agent="helper")

    assert resumed is not None
    assert (resumed.run_id, resumed.saved) == ("r1", "saved r1")
    assert resumed.decisions == {"c1": APPROVED[0]}
    assert list(state[STATE_KEY]) == ["r2"]
    assert state["own"] == 1


def test_without_a_run_id_the_newest_is_meant() -> None:
    state = state_with_paused("r1", "r2")

    resumed = resumption(a_turn("r3", state, decisions=APPROVED), agent="helper")

    assert resumed is not None
    assert resumed.run_id == "r2"


def test_a_turn_without_a_resume_block_resumes_nothing() -> None:
    assert resumption(a_turn("r2", state_with_paused("r1")), agent="helper") is None


def test_a_session_keeps_only_its_newest_paused_runs() -> None:
    state = state_with_paused(*(f"r{n}" for n in range(MAX_PAUSED_RUNS + 2)))

    assert list(state[STATE_KEY]) == [f"r{n}" for n in range(2, MAX_PAUSED_RUNS + 2)]


def test_another_agents_run_is_refused_and_kept() -> None:
    state = state_with_paused("r1")

    with pytest.raises(FatalAgentError) as caught:
        resumption(a_turn("r2", state, run_id="r1", decisions=APPROVED), agent="other")

    assert caught.value.status_code == 400
    assert list(state[STATE_KEY]) == ["r1"]
