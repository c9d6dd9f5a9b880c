"""The kept chunks of one attempt, oldest droppable, read by place.

Adding, dropping the oldest and reading the next are O(1) whatever the length; finding a reader's
place is one binary search.  A place is a number that never changes: how many chunks were added
before.  It differs from a chunk's index only after chunks that never arrived.
"""

from bisect import bisect_right

from turnline.protocol import Chunk
from turnline.store.memory.weights import chunk_weight


class ChunkLog:
    """Chunks of `attempt`, in index order.

    Attributes:
        attempt: whose chunks these are; a new attempt gets a new log.
        weight: about how many bytes the kept chunks take.
    """

    __slots__ = ("_by_place", "_end", "_last_index", "_start", "attempt", "weight")

    def __init__(self, attempt: int) -> None:
        self.attempt = attempt
        self.weight = 0
        self._by_place: dict[int, Chunk] = {}
        self._start = 0
        self._end = 0
        self._last_index = -1

    def __len__(self) -> int:
        return self._end - self._start

    def add(self, chunk: Chunk) -> bool:
        """Keep a chunk; False if its index is not above every index added before."""
        if chunk.index <= self._last_index:
            return False
        self._by_place[self._end] = chunk
        self._end += 1
        self._last_index = chunk.index
        self.weight += chunk_weight(chunk)
        return True

    def drop_oldest(self) -> None:
        """Forget the oldest kept chunk; there must be one."""
        self.weight -= chunk_weight(self._by_place.pop(self._start))
        self._start += 1

    def place_after(self, index: int) -> int:
        """Give the place of the first kept chunk with a higher index, or of the next to come."""
        places = range(self._start, self._end)
        return self._start + bisect_right(places, index, key=lambda at: self._by_place[at].index)

    def read(self, place: int) -> tuple[int, Chunk] | None:
        """Give the chunk at `place`, or the oldest kept if that one is gone, and where it was.

        None when nothing has been added there yet.
        """
        place = max(place, self._start)
        if place >= self._end:
            return None
        return place, self._by_place[place]
