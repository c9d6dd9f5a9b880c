"""Runs that wait for a person: kept in the session's state, answered by a later turn.

A paused run holds no worker.  What its framework needs to go on stands in `Turn.state`, committed
with the reply, so any runner can resume it, also after a restart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from turnline.agent.port import FatalAgentError, Reply, Turn
from turnline.protocol import ChatEvent, EventType, JsonObject

STATE_KEY = "paused_runs"
MAX_PAUSED_RUNS = 8
PAUSED_STATUS = 202


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumption:
    """A paused run and what was decided about it.

    Attributes:
        run_id: the run.
        saved: what the framework kept, as given to `pause`.
        decisions: by the id of the interruption; each with the guide's fields (`status`,
            `message`, `payload`).
    """

    run_id: str
    saved: Any
    decisions: Mapping[str, JsonObject]


def pause(
    turn: Turn, *, agent: str, saved: object, interruptions: Sequence[JsonObject]
) -> ChatEvent:
    """Keep a run for later and give the event that says so.

    The run is named after its turn.  A session keeps `MAX_PAUSED_RUNS`; the oldest are forgotten.

    Args:
        saved: JSON; what `resumption` gives back.
        interruptions: each with an `id` to decide on.
    """
    runs = dict(_runs(turn))
    runs[turn.request_id] = {"agent": agent, "saved": saved}
    while len(runs) > MAX_PAUSED_RUNS:
        del runs[next(iter(runs))]
    turn.state[STATE_KEY] = runs
    return ChatEvent(
        type=EventType.RUN_PAUSED,
        data={"run_id": turn.request_id, "agent": agent, "interruptions": list(interruptions)},
    )


def paused_reply(paused: ChatEvent, *, text: str, items: Sequence[JsonObject]) -> Reply:
    """Give the guide's answer of a paused run: 202 and what is to be decided."""
    extra = {"status": "PAUSED", **paused.data}
    return Reply(text=text, status_code=PAUSED_STATUS, extra=extra, items=items)


def resumption(turn: Turn, *, agent: str) -> Resumption | None:
    """Give the run this turn resumes and forget it in the state; None when it resumes none.

    Without a `run_id` the newest paused run is meant.

    Raises:
        FatalAgentError: 404 for an unknown run, 400 for another agent's or malformed decisions.
    """
    if turn.resume is None:
        return None
    runs = dict(_runs(turn))
    run_id = turn.resume.get("run_id") or next(reversed(runs), "")
    run = runs.pop(run_id, None) if isinstance(run_id, str) else None
    if run is None:
        raise FatalAgentError("No paused run of that id in this session", status_code=404)
    if run["agent"] != agent:
        raise FatalAgentError(
            "Another agent paused this run; name it under 'agent'", status_code=400
        )
    decisions = _decisions(turn.resume.get("decisions"))
    turn.state[STATE_KEY] = runs
    return Resumption(run_id=run_id, saved=run["saved"], decisions=decisions)


def _runs(turn: Turn) -> Mapping[str, Any]:
    runs = turn.state.get(STATE_KEY)
    return runs if isinstance(runs, dict) else {}


def _decisions(given: object) -> dict[str, JsonObject]:
    if not isinstance(given, list | tuple) or not given:
        raise FatalAgentError("resume needs a list of decisions", status_code=400)
    decisions: dict[str, JsonObject] = {}
    for decision in given:
        if not isinstance(decision, Mapping) or not isinstance(decision.get("id"), str):
            raise FatalAgentError("each decision needs the id it decides on", status_code=400)
        decisions[decision["id"]] = decision
    return decisions
