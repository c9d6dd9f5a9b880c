"""Judges a whole history: nothing lost, doubled, reordered or overlapping."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from turnline.protocol import ChatReply, Chunk
from turnline.store import Gap, StoredReply, StreamItem


@dataclass(slots=True)
class Run:
    """One try of an agent at a turn; `ended` stays None for one that was cut off."""

    session_id: str
    request_id: str
    started: int
    ended: int | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """When something happened to a turn, in seconds on a clock of its history."""

    request_id: str
    at: float


@dataclass(slots=True)
class History:
    """What was seen: submissions in order of acceptance, runs of the agent, answers, streams.

    Attributes:
        runs: of agents; where a runner may freeze and wake up, only those that were committed.
        starts / commits: of agents and by runners, where both are known.
        readings: every answer anybody was given for a turn.
        sockets: every frame of each client socket, in the order read.
        waits: seconds a caller was busy with a turn, by request id.
        complaints: what callers say was wrong, such as having waited in vain.
    """

    accepted: list[tuple[str, str]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    replies: dict[str, StoredReply] = field(default_factory=dict)
    streams: dict[str, list[StreamItem]] = field(default_factory=dict)
    histories: dict[str, list[str]] = field(default_factory=dict)
    starts: list[Moment] = field(default_factory=list)
    commits: list[Moment] = field(default_factory=list)
    readings: dict[str, list[StoredReply]] = field(default_factory=dict)
    sockets: list[list[dict[str, Any]]] = field(default_factory=list)
    waits: dict[str, float] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    _tick: int = 0

    def tick(self) -> int:
        """Give the next moment of this history's own clock."""
        self._tick += 1
        return self._tick


def faults_of(history: History) -> list[str]:
    """Give everything wrong with a history, one sentence each; empty if all guarantees held."""
    return [
        *_lost(history),
        *_doubled(history),
        *_reordered(history),
        *_overlapping(history),
        *_broken_streams(history),
        *_committed_again(history),
        *_changed(history),
        *(fault for frames in history.sockets for fault in socket_faults(frames)),
        *history.complaints,
    ]


def runs_of(history: History, request_id: str) -> int:
    """How often the agent was started for a turn."""
    return sum(run.request_id == request_id for run in history.runs)


def _lost(history: History) -> list[str]:
    return [
        f"{request_id} was accepted and never answered"
        for _, request_id in history.accepted
        if request_id not in history.replies
    ]


def _doubled(history: History) -> list[str]:
    faults = []
    for session_id, turns in history.histories.items():
        for request_id, count in Counter(turns).items():
            if count > 1:
                faults.append(f"{request_id} stands {count} times in the history of {session_id}")
    for _, request_id in history.accepted:
        reply = history.replies.get(request_id)
        in_history = any(request_id in turns for turns in history.histories.values())
        if reply is not None and isinstance(reply.payload, ChatReply) != in_history:
            faults.append(f"{request_id}: the answer and the history disagree")
    return faults


def _reordered(history: History) -> list[str]:
    order: dict[str, list[str]] = defaultdict(list)
    for session_id, request_id in history.accepted:
        if request_id not in order[session_id]:
            order[session_id].append(request_id)
    faults = []
    for session_id, turns in history.histories.items():
        expected = [request_id for request_id in order[session_id] if request_id in turns]
        if turns != expected:
            faults.append(f"{session_id} holds {turns}, accepted in the order {expected}")
    return faults


def _overlapping(history: History) -> list[str]:
    faults = []
    by_session: dict[str, list[Run]] = defaultdict(list)
    for run in history.runs:
        by_session[run.session_id].append(run)
    for session_id, runs in by_session.items():
        for first, second in pairwise(runs):
            if first.ended is not None and second.started < first.ended:
                faults.append(f"two runs of {session_id} overlapped")
    return faults


def _broken_streams(history: History) -> list[str]:
    faults = []
    for request_id, items in history.streams.items():
        faults += [f"{request_id}: {fault}" for fault in stream_faults(items)]
    return faults


def _committed_again(history: History) -> list[str]:
    committed: dict[str, float] = {}
    faults = []
    for commit in history.commits:
        if commit.request_id in committed:
            faults.append(f"{commit.request_id} was committed more than once")
        committed.setdefault(commit.request_id, commit.at)
    faults += [
        f"{start.request_id} was run {start.at - committed[start.request_id]:.3f} s after its end"
        for start in history.starts
        if start.at > committed.get(start.request_id, start.at)
    ]
    return faults


def _changed(history: History) -> list[str]:
    faults = []
    for request_id, readings in history.readings.items():
        answers = {(reading.status_code, _gist(reading)) for reading in readings}
        if len(answers) > 1:
            faults.append(f"{request_id} was answered in different ways: {sorted(answers)}")
    return faults


def _gist(reply: StoredReply) -> str:
    payload = reply.payload
    return payload.result if isinstance(payload, ChatReply) else payload.code


def stream_faults(items: list[StreamItem]) -> list[str]:
    """Give what is wrong with what one reader saw of a stream, from its beginning to its end."""
    ends = [item for item in items if isinstance(item, StoredReply)]
    if len(ends) != 1 or items[-1] is not ends[0]:
        return ["the end does not come exactly once and last"]
    faults, attempt, text, index = [], 0, "", -1
    for item in items[:-1]:
        if isinstance(item, Gap):
            faults.append("chunks were lost")
        elif isinstance(item, Chunk):
            if item.attempt < attempt:
                faults.append("a chunk of an earlier attempt came late")
            if item.attempt > attempt:
                attempt, text, index = item.attempt, "", -1
            if item.index != index + 1:
                faults.append(f"chunk {item.index} follows chunk {index}")
            index = item.index
            text += item.delta
    end = ends[0]
    kept = end.payload.result if isinstance(end.payload, ChatReply) else None
    if kept is not None and attempt == end.attempt and end.chunk_count and text != kept:
        faults.append("the text shown is not the text kept")
    return faults


@dataclass(slots=True)
class _Place:
    """Where a socket's reader stands in one turn."""

    attempt: int = 0
    index: int = -1
    end: str = ""


def socket_faults(frames: list[dict[str, Any]]) -> list[str]:
    """Give what is wrong with the frames of one client socket, from its opening to its end.

    Of each turn its pieces come in order, what is missing or void is said, the end comes once and
    last.  A reader who asks again (CHAT_QUEUED, RESUMING) is told again.
    """
    faults: list[str] = []
    places: dict[str, _Place] = defaultdict(_Place)
    for frame in frames:
        place = places[frame.get("request_id", "")]
        match frame["type"]:
            case "CHAT_QUEUED":
                place.end = ""
            case "SYSTEM_RESPONSE" if frame.get("state") == "RESUMING":
                attempt, _, index = frame["after"].partition("-")
                places[frame["request_id"]] = _Place(int(attempt), int(index))
            case "CHAT_RESPONSE":
                faults += _end_faults(place, frame)
            case "STREAM_CHUNK" if frame["done"]:
                faults += _end_faults(place, frame) + _missing_before(place, frame)
            case "STREAM_CHUNK":
                faults += _piece_faults(place, frame)
            case _:
                pass
    return faults


def _piece_faults(place: _Place, frame: dict[str, Any]) -> list[str]:
    request_id, attempt, event = frame["request_id"], frame["attempt"], frame["event"]
    faults = [f"{request_id}: a piece came after the end"] if place.end else []
    if event["type"] == "restart" or not place.attempt:
        if attempt < place.attempt:
            faults.append(f"{request_id}: restarted from attempt {place.attempt} at {attempt}")
        place.attempt, place.index = attempt, -1
    if event["type"] == "restart":
        return faults
    if attempt != place.attempt:
        faults.append(f"{request_id}: attempt {attempt} follows {place.attempt}, which is not said")
    if event["type"] == "gap":
        first, last = event["first"], event["last"]
    else:
        first, last = frame.get("first_index", frame["index"]), frame["index"]
    if first != place.index + 1:
        faults.append(f"{request_id}: piece {first} follows piece {place.index}")
    place.attempt, place.index = attempt, last
    return faults


def _end_faults(place: _Place, frame: dict[str, Any]) -> list[str]:
    kind = "reply" if "error" not in frame else "failure"
    # A turn that was given up, and then made to run again, is answered again.
    again = place.end and (place.end, kind) != ("failure", "reply")
    place.end = kind
    return [f"{frame['request_id']}: a second end"] if again else []


def _missing_before(place: _Place, frame: dict[str, Any]) -> list[str]:
    whole = "result" in frame or "error" in frame
    if whole or (frame["attempt"], frame["index"]) == (place.attempt or 1, place.index + 1):
        return []
    return [f"{frame['request_id']}: the end is {frame['index']}, after piece {place.index}"]
