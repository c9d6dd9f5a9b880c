"""What a reader of a stream has fetched and was not given yet: for stores read over a network."""

from collections import deque

from turnline.protocol import Chunk
from turnline.store.ports import StoredReply, StreamItem
from turnline.store.stream_place import StreamPlace


class Unread:
    """Chunks in order and then an end, with gaps told where something is missing."""

    def __init__(self, place: StreamPlace) -> None:
        self._place = place
        self._chunks: deque[Chunk] = deque()
        self._reply: StoredReply | None = None

    def __bool__(self) -> bool:
        """Whether there are chunks."""
        return bool(self._chunks)

    def add(self, chunk: Chunk) -> None:
        """Put one behind the others."""
        self._chunks.append(chunk)

    def finish(self, reply: StoredReply) -> None:
        """Put the end behind all chunks."""
        self._reply = reply

    def next(self) -> StreamItem | None:
        """Give the next item and move the reader there; None if nothing is left."""
        if self._chunks:
            return self._next_chunk(self._chunks[0])
        if self._reply is None:
            return None
        return self._place.gap_before_end(self._reply) or self._reply

    def _next_chunk(self, chunk: Chunk) -> StreamItem:
        self._place.enter(chunk.attempt)
        if gap := self._place.gap_before(chunk.index):
            return gap
        self._place.index = chunk.index
        return self._chunks.popleft()
