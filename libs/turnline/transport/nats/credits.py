"""Counts how many deliveries of a message spent no attempt, where every process finds it.

The server counts deliveries; some are none of the turn's doing: handed back, or held only until
the turn before it ends.  The count of those lies in a small stream, one message per envelope, and
is absolute, so that writing it twice does no harm.  Read only for what was delivered before.
"""

from turnline.transport.nats.held import Held
from turnline.transport.nats.jetstream import JetStream
from turnline.transport.nats.subjects import unspent_stream


class Credits:
    """The counts of one queue."""

    def __init__(self, api: JetStream, stream: str) -> None:
        self._api = api
        self._stream = unspent_stream(stream)

    async def read(self, held: Held) -> int:
        """Give the deliveries before this one that spent nothing; fewer than there were."""
        if held.delivered == 1:
            return 0
        found = await self._api.last_on(self._stream, self._subject(held))
        written = int(found[1]) if found is not None and found[1].isdigit() else 0
        return min(written, held.delivered - 1)

    async def write(self, held: Held, count: int) -> None:
        """Say that `count` deliveries of a message, this one included or not, spent nothing."""
        await self._api.place(self._subject(held), str(count).encode())

    def _subject(self, held: Held) -> str:
        return f"{self._stream}.{held.key}"
