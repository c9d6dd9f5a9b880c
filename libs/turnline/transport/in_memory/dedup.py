"""Which ids came lately.  Knows nothing of queues.

The window is the same for every id, so ids expire in the order they came: remembering and
forgetting cost constant time, and no timer is needed.
"""

from collections import OrderedDict


class DedupWindow:
    """Remembers ids for a time.

    Args:
        seconds: how long an id is remembered; 0 remembers nothing.
        max_ids: ids held at once; past this the oldest is forgotten early.
    """

    def __init__(self, *, seconds: float, max_ids: int) -> None:
        self._seconds = seconds
        self._max_ids = max_ids
        self._until: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        """Ids held, those that expired since the last call included."""
        return len(self._until)

    def seen(self, dedup_id: str, now: float) -> bool:
        """Whether the id was remembered less than the window ago."""
        self._forget_expired(now)
        return dedup_id in self._until

    def remember(self, dedup_id: str, now: float) -> bool:
        """Keep an id that is not held; return False if an older one was forgotten early for it."""
        if self._seconds <= 0:
            return True
        self._until[dedup_id] = now + self._seconds
        if len(self._until) <= self._max_ids:
            return True
        self._until.popitem(last=False)
        return False

    def _forget_expired(self, now: float) -> None:
        while self._until:
            dedup_id, until = next(iter(self._until.items()))
            if until > now:
                return
            del self._until[dedup_id]
