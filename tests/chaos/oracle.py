"""Judges a whole history: nothing lost, doubled, reordered or overlapping."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

from turnline.protocol import ChatReply, Chunk
from turnline.store import Gap, StoredReply, StreamItem


@dataclass(slots=True)
class Run:
    """One try of an agent at a turn; `ended` stays None for one that was cut off."""

    session_id: str
    request_id: str
    started: int
    ended: int | None = None


@dataclass(slots=True)
class History:
    """What was seen: submissions in order of acceptance, runs of the agent, answers, streams."""

    accepted: list[tuple[str, str]] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    replies: dict[str, StoredReply] = field(default_factory=dict)
    streams: dict[str, list[StreamItem]] = field(default_factory=dict)
    histories: dict[str, list[str]] = field(default_factory=dict)
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
