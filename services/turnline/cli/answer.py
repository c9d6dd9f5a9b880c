"""What a terminal shows of one answer, frame by frame.

A client that was cut off gets frames twice: those pushed to its next connection, and those its
resume brings.  The server says where the resume begins; from there on the frames are whole and in
order, and what came before is passed over.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Show = Callable[[str], None]


@dataclass(slots=True, kw_only=True)
class Answer:
    """One answer on its way.

    Attributes:
        text: shows a piece of the answer.
        note: shows a remark about it.
        queued: the server has the question.
        done / failed: the answer has ended; with an error.
        resuming: a resume was asked for and has not begun.
    """

    request_id: str
    text: Show
    note: Show
    queued: bool = False
    done: bool = False
    failed: bool = False
    resuming: bool = False
    _attempt: int = field(default=0)
    _next: int = field(default=0)

    @property
    def position(self) -> str:
        """The last piece shown, for a resume; empty if none was."""
        return f"{self._attempt}-{self._next - 1}" if self._next else ""

    def take(self, frame: dict[str, Any]) -> None:
        """Show what a frame adds; frames of other turns are passed over."""
        if frame.get("request_id") != self.request_id or self.done:
            return
        match frame.get("type"):
            case "CHAT_QUEUED":
                self.queued = True
            case "SYSTEM_RESPONSE" if frame.get("status") == "FAILED":
                self._end(error=str(frame.get("message")))
            case "SYSTEM_RESPONSE" if frame.get("state") == "RESUMING":
                self.resuming = False
            case "STREAM_CHUNK" if not self.resuming:
                self._take_chunk(frame)
            case _:
                pass

    def _take_chunk(self, frame: dict[str, Any]) -> None:
        attempt = frame.get("attempt", self._attempt)
        if attempt < self._attempt:
            return
        if attempt > self._attempt:
            if self._attempt and self._next:
                self.note("the answer starts again")
            self._attempt, self._next = attempt, 0
        event = frame.get("event", {})
        if event.get("type") == "gap":
            self._next = event["last"] + 1
            self.note("part of the answer was missed")
        elif "index" in frame and (frame["done"] or self._is_new(frame)):
            if frame["done"]:
                self._end(error=frame.get("error"), rest=frame.get("result", ""))
            else:
                self._next = frame["index"] + 1
                self.text(frame.get("delta", ""))

    def _is_new(self, frame: dict[str, Any]) -> bool:
        first: int = frame.get("first_index", frame["index"])
        return first >= self._next

    def _end(self, *, error: str | None = None, rest: str = "") -> None:
        self.done = True
        if error is not None:
            self.failed = True
            self.note(error)
        elif rest and not self._next:
            self.text(rest)
