"""What happened to a queue, as a list of events, and the oracle that judges it.  Pure.

A history is written by the readers and senders of a case while they run.  Two rules make it sound
without a common clock: a send is recorded before it is called, and so is a settlement (the broker
may hand the next envelope out before the caller hears of it).
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class What(StrEnum):
    """Kinds of events."""

    SENT = "sent"
    RECEIVED = "received"
    ACKED = "acked"
    RETRIED = "retried"
    RELEASED = "released"
    BURIED = "buried"
    CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class Event:
    """One event.

    Attributes:
        attempt: of the delivery; 0 when sent.
    """

    what: What
    session_id: str
    request_id: str
    attempt: int = 0


@dataclass(slots=True)
class _Lane:
    """One session as it should be: who is next, and who is out."""

    expected: deque[str] = field(default_factory=deque)
    spent: Counter[str] = field(default_factory=Counter)
    out: str = ""
    crashed: bool = False


def find_faults(events: Iterable[Event]) -> list[str]:
    """Judge a finished history; give a sentence per fault, none if all promises were kept.

    Judged per session: envelopes come in the order sent, one at a time, each until it is acked or
    buried and never after, with attempts that count retries and crashes and no releases.
    """
    lanes: dict[str, _Lane] = defaultdict(_Lane)
    faults: list[str] = []
    for event in events:
        faults.extend(_step(lanes[event.session_id], event))
    for session_id, lane in lanes.items():
        faults.extend(f"lost: {session_id}/{name}" for name in lane.expected)
    return faults


def _step(lane: _Lane, event: Event) -> Sequence[str]:
    name = event.request_id
    match event.what:
        case What.SENT:
            lane.expected.append(name)
        case What.RECEIVED:
            return _received(lane, event)
        case What.CRASHED:
            lane.crashed = True
            lane.spent[name] += 1
        case What.RETRIED:
            lane.out = ""
            lane.spent[name] += 1
        case What.RELEASED:
            lane.out = ""
        case What.ACKED | What.BURIED:
            lane.out = ""
            if name in lane.expected:
                lane.expected.remove(name)
    return ()


def _received(lane: _Lane, event: Event) -> Sequence[str]:
    name, where = event.request_id, f"{event.session_id}/{event.request_id}"
    faults = []
    if lane.out and not (lane.crashed and lane.out == name):
        faults.append(f"overlapping: {where} came while {lane.out} was out")
    if name not in lane.expected:
        faults.append(f"doubled: {where} came after its end")
    elif lane.expected[0] != name:
        faults.append(f"reordered: {where} came before {lane.expected[0]}")
    if event.attempt != lane.spent[name] + 1:
        faults.append(f"miscounted: {where} came as {event.attempt}, not {lane.spent[name] + 1}")
    lane.out, lane.crashed = name, False
    return faults
