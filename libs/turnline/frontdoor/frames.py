"""What clients see: bodies and frames as JSON objects, the same on REST, SSE and WebSocket.

Field names and frame types are the guide's; `request_id`, `attempt`, `index`, `code`, `retry` are
added.  Every error anywhere has the shape `{"detail": {"error": ..., "code": ..., ...}}` over HTTP
and the same inner object's fields in a frame.
"""

from collections.abc import Iterator
from typing import Any

from turnline.protocol import ChatReply, Chunk, Failure, Position
from turnline.store import Gap, StoredReply, StreamItem

JsonDict = dict[str, Any]


def error_detail(failure: Failure, *, session_id: str = "", request_id: str = "") -> JsonDict:
    """Describe a failure: `error` (a sentence), `code`, `retry`, and what else is known."""
    detail: JsonDict = {
        "error": failure.message,
        "code": failure.code,
        "retry": failure.retry.value,
    }
    if failure.retry_after is not None:
        detail["retry_after"] = failure.retry_after
    if failure.field:
        detail["field"] = failure.field
    if session_id:
        detail["session_id"] = session_id
    if request_id:
        detail["request_id"] = request_id
    return detail


def reply_body(reply: StoredReply) -> JsonDict:
    """Give the body of a finished turn: the guide's reply, or `{"detail": ...}` for a failure."""
    if isinstance(reply.payload, Failure):
        detail = error_detail(
            reply.payload, session_id=reply.session_id, request_id=reply.request_id
        )
        return {"detail": detail}
    own = {
        "result": reply.payload.result,
        "session_id": reply.session_id,
        "request_id": reply.request_id,
    }
    return {**own, **reply.payload.extra, **own}


def chat_response_frame(reply: StoredReply) -> JsonDict:
    """Give the CHAT_RESPONSE frame of a finished turn."""
    if isinstance(reply.payload, ChatReply):
        return {**reply_body(reply), "status_code": reply.status_code, "type": "CHAT_RESPONSE"}
    detail = error_detail(reply.payload, session_id=reply.session_id, request_id=reply.request_id)
    return {**detail, "status_code": reply.status_code, "type": "CHAT_RESPONSE"}


class StreamFrames:
    """Turns the items of one stream into frames for one reader.

    Says what a reader must know and cannot see from chunks alone: that a new attempt voids what
    was shown (`restart`), that chunks are gone (`gap`), and the final text when the reader cannot
    have it from its chunks.
    """

    def __init__(self, *, session_id: str, request_id: str, after: Position) -> None:
        self._ids: JsonDict = {"session_id": session_id, "request_id": request_id}
        self._attempt = after.attempt
        self._seen = after.index + 1 if after.attempt else 0
        self._lossy = False

    @property
    def position(self) -> Position:
        """Where this reader stands; resume from here."""
        return Position(self._attempt, self._seen - 1)

    def frames(self, item: StreamItem) -> Iterator[tuple[Position, JsonDict]]:
        """Give the frames an item makes, each with the position a reader has reached by it."""
        match item:
            case Chunk():
                yield from self._moved_to(item.attempt)
                self._seen = item.index + 1
                yield item.position, self._chunk_frame(item)
            case Gap():
                yield from self._moved_to(item.attempt)
                self._seen = item.last + 1
                self._lossy = True
                event = {"type": "gap", "first": item.first, "last": item.last}
                yield self.position, self._event_frame(event)
            case StoredReply():
                if item.attempt:
                    yield from self._moved_to(item.attempt)
                yield self.position, self._done_frame(item)

    def _moved_to(self, attempt: int) -> Iterator[tuple[Position, JsonDict]]:
        if attempt == self._attempt:
            return
        first = self._attempt == 0
        self._attempt, self._seen = attempt, 0
        if not first:
            self._lossy = False
            yield self.position, self._event_frame({"type": "restart", "attempt": attempt})

    def _chunk_frame(self, chunk: Chunk) -> JsonDict:
        frame: JsonDict = {"delta": chunk.delta} if chunk.delta else {}
        frame["event"] = chunk.event.to_json()
        frame["done"] = False
        frame.update(self._ids)
        frame["attempt"] = chunk.attempt
        frame["index"] = chunk.index
        return frame

    def _event_frame(self, event: JsonDict) -> JsonDict:
        return {"event": event, "done": False, **self._ids, "attempt": self._attempt}

    def _done_frame(self, reply: StoredReply) -> JsonDict:
        frame: JsonDict = {"done": True}
        if isinstance(reply.payload, Failure):
            frame.update(error_detail(reply.payload))
        else:
            if self._lossy or self._seen < reply.chunk_count or not reply.chunk_count:
                frame["result"] = reply.payload.result
            frame = {**frame, **reply.payload.extra, **frame}
        frame["status_code"] = reply.status_code
        frame.update(self._ids)
        frame["attempt"] = self._attempt
        frame["index"] = self._seen
        return frame
