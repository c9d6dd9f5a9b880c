"""Remembers how many deliveries of a message started no attempt; see ADR 0012.

SQS counts every receive, and nothing on a message can be changed.  So the memory is this
process's: another one takes what was handed back for an attempt that was made.
"""

from collections import OrderedDict

MAX_ENTRIES = 20_000


class Unspent:
    """Counts by message; the oldest give way."""

    def __init__(self) -> None:
        self._counts: OrderedDict[str, int] = OrderedDict()

    def of(self, message_id: str) -> int:
        """Give the count; 0 for what nobody noted."""
        return self._counts.get(message_id, 0)

    def note(self, message_id: str, count: int = 1) -> None:
        """Count deliveries that started nothing."""
        self._counts[message_id] = self._counts.get(message_id, 0) + count
        self._counts.move_to_end(message_id)
        if len(self._counts) > MAX_ENTRIES:
            self._counts.popitem(last=False)

    def forget(self, message_id: str) -> None:
        """Forget a message that is gone."""
        self._counts.pop(message_id, None)
