"""Where a reader of a reply's stream stands, whichever store it reads from.

Pure: knows positions, and what is missing between them.
"""

from turnline.protocol import Position
from turnline.store.ports import Gap, StoredReply


class StreamPlace:
    """The last item a reader was given; moves on as it is given more.

    Attributes:
        attempt / index: of that item; an index of -1 stands before the attempt's first one.
    """

    __slots__ = ("attempt", "index")

    def __init__(self, after: Position) -> None:
        self.attempt, self.index = after.attempt, after.index

    def enter(self, attempt: int) -> None:
        """Go to the beginning of a later attempt; an earlier one changes nothing."""
        if attempt > self.attempt:
            self.attempt, self.index = attempt, -1

    def gap_before(self, index: int) -> Gap | None:
        """Pass what is not kept before an index of this attempt; None if nothing is missing."""
        first = self.index + 1
        if index <= first:
            return None
        self.index = index - 1
        return Gap(attempt=self.attempt, first=first, last=index - 1)

    def gap_before_end(self, reply: StoredReply) -> Gap | None:
        """As `gap_before`, of the chunks that led to an end."""
        self.enter(reply.attempt)
        return self.gap_before(reply.chunk_count) if reply.attempt == self.attempt else None
