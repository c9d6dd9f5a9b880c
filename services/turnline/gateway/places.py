"""How far a socket's client has been sent each turn, and what a pushed frame becomes in its light.

A frame that was sent already is dropped, what is missing before one is said (`restart`, `gap`), and
the end of a turn comes once (ARCHITECTURE, guarantee 5).  So a responder may push twice, skip a pod
that does not answer, or push beside a resume, and the client still reads one honest stream.  A
frame of no turn is known by its `push_id` (ADR 0017).

Pure: frames in, frames out.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from turnline.protocol import Position
from turnline.push import CHAT_RESPONSE, STREAM_CHUNK, Frame, push_id_of, turn_of


class _End(Enum):
    OPEN = auto()
    FAILED = auto()
    REPLIED = auto()


@dataclass(slots=True)
class _Place:
    attempt: int = 0
    index: int = -1
    end: _End = _End.OPEN
    streams: bool = False


class Places:
    """The places of one socket.  Bounded: what is longest without a frame is forgotten.

    More ends and pushes are remembered than a store holds for a user, who may be given those twice.
    """

    __slots__ = ("_ended", "_max_ended", "_max_pushed", "_max_running", "_pushed", "_running")

    def __init__(
        self, *, max_running: int = 256, max_ended: int = 128, max_pushed: int = 256
    ) -> None:
        self._max_running = max_running
        self._max_ended = max_ended
        self._max_pushed = max_pushed
        self._running: dict[str, _Place] = {}
        self._ended: dict[str, _Place] = {}
        self._pushed: dict[str, None] = {}

    @property
    def size(self) -> tuple[int, int, int]:
        """How many running turns, ended turns and pushes are known."""
        return len(self._running), len(self._ended), len(self._pushed)

    def position(self, request_id: str) -> Position | None:
        """Where the client stands in a turn; None if it was sent nothing of it."""
        place = self._running.get(request_id) or self._ended.get(request_id)
        return Position(place.attempt, place.index) if place and place.attempt else None

    def has_ended(self, request_id: str) -> bool:
        """Whether the client was sent the end of a turn."""
        return request_id in self._ended

    def expect(self, request_id: str, *, stream: bool) -> None:
        """The client waits for a turn, of which nothing may have been sent yet."""
        if request_id not in self._running and request_id not in self._ended:
            self._keep(request_id, _Place(streams=stream))

    def without_end(self) -> list[tuple[str, bool]]:
        """Give the turns whose end the client waits for, and whether it reads them in pieces."""
        places = self._running.items()
        return [(request_id, place.streams or place.attempt > 0) for request_id, place in places]

    def forget(self, request_id: str) -> None:
        """The turn begins anew."""
        self._running.pop(request_id, None)
        self._ended.pop(request_id, None)

    def rewind(self, request_id: str, after: Position) -> None:
        """The client asked for everything behind `after`, whatever it was sent before."""
        self._keep(request_id, _Place(after.attempt, after.index))

    def take(self, frame: Frame) -> list[Frame]:
        """Give what to send for a pushed frame, in order; nothing for one sent before.

        Frames without anything to know them by, or that name no place in their turn, pass as
        they are.
        """
        request_id = turn_of(frame)
        if not request_id:
            return [frame] if self._is_new(push_id_of(frame)) else []
        place = self._running.get(request_id) or self._ended.get(request_id) or _Place()
        frames = _end(place, frame) if _is_end(frame) else _piece(place, frame)
        self._keep(request_id, place)
        return frames

    def note(self, frame: Frame) -> None:
        """Remember a frame that is sent whatever was sent before (of a resume or a replay)."""
        request_id = turn_of(frame)
        if not request_id:
            return
        place = self._running.get(request_id) or self._ended.get(request_id) or _Place()
        if (attempt := _number(frame, "attempt")) is not None:
            place.attempt = attempt
            place.index = _last_index(frame)
        place.end = _end_of(frame) if _is_end(frame) else _End.OPEN
        self._keep(request_id, place)

    def _is_new(self, push_id: str) -> bool:
        if push_id in self._pushed:
            return False
        if push_id:
            self._pushed[push_id] = None
            if len(self._pushed) > self._max_pushed:
                del self._pushed[next(iter(self._pushed))]
        return True

    def _keep(self, request_id: str, place: _Place) -> None:
        ended = place.end is not _End.OPEN
        here, there = (self._ended, self._running) if ended else (self._running, self._ended)
        there.pop(request_id, None)
        here.pop(request_id, None)
        here[request_id] = place
        if len(here) > (self._max_ended if ended else self._max_running):
            del here[next(iter(here))]


def _piece(place: _Place, frame: Frame) -> list[Frame]:
    attempt, index = _number(frame, "attempt"), _number(frame, "index")
    if attempt is None:
        return [frame]
    if attempt < place.attempt or (attempt == place.attempt and place.end is not _End.OPEN):
        return []
    restarts = _event(frame).get("type") == "restart"
    if attempt == place.attempt and restarts:
        return []
    before = _move(place, frame, attempt)
    if index is None:
        return [frame] if restarts else [*before, frame]
    if index <= place.index:
        return before
    before += _gap(place, frame, index)
    place.index = index
    return [*before, frame]


def _end(place: _Place, frame: Frame) -> list[Frame]:
    end = _end_of(frame)
    if place.end is _End.REPLIED or place.end is end:
        return []
    place.end = end
    attempt, index = _number(frame, "attempt"), _number(frame, "index")
    if attempt is None or index is None or attempt < place.attempt:
        # A turn that was given up ends without a place of its own.
        return [frame]
    before = _move(place, frame, attempt)
    place.end = end
    if "result" not in frame:
        before += _gap(place, frame, index)
    place.index = max(place.index, index)
    return [*before, frame]


def _move(place: _Place, frame: Frame, attempt: int) -> list[Frame]:
    """Go to a later attempt, which voids what was sent of the one before."""
    if attempt == place.attempt:
        return []
    started = place.attempt > 0
    place.attempt, place.index, place.end = attempt, -1, _End.OPEN
    return [_said(frame, {"type": "restart", "attempt": attempt})] if started else []


def _gap(place: _Place, frame: Frame, index: int) -> list[Frame]:
    if index <= place.index + 1:
        return []
    return [_said(frame, {"type": "gap", "first": place.index + 1, "last": index - 1})]


def _said(frame: Frame, event: dict[str, Any]) -> Frame:
    kept = ("session_id", "request_id", "attempt")
    ids = {name: frame[name] for name in kept if name in frame}
    return {"event": event, "done": False, **ids, "type": STREAM_CHUNK}


def _is_end(frame: Frame) -> bool:
    return frame.get("type") == CHAT_RESPONSE or frame.get("done") is True


def _end_of(frame: Frame) -> _End:
    return _End.FAILED if "error" in frame and "result" not in frame else _End.REPLIED


def _last_index(frame: Frame) -> int:
    index = _number(frame, "index")
    if index is None and _event(frame).get("type") == "gap":
        index = _number(_event(frame), "last")
    return -1 if index is None else index


def _event(frame: Frame) -> dict[str, Any]:
    event = frame.get("event")
    return event if isinstance(event, dict) else {}


def _number(frame: Frame, name: str) -> int | None:
    value = frame.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
