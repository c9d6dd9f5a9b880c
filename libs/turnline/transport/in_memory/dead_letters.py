"""The dead letters of one queue; see `turnline.transport.DeadLetters`."""

import itertools
from collections.abc import Sequence

from turnline.errors import UndecodableError
from turnline.protocol import ChatRequest
from turnline.protocol.codec import encode
from turnline.transport.in_memory.dispatcher import Dispatcher
from turnline.transport.port import DeadLetter


class InMemoryDeadLetters:
    """The shelf of a queue and the way back from it."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._shelf = dispatcher.shelf

    async def list(self, *, limit: int = 100, after: str = "") -> Sequence[DeadLetter]:
        """Give up to `limit` dead letters, oldest first, behind the id `after`, even a gone one.

        Raises:
            NotFoundError: `after` is no id of this queue's.
        """
        return tuple(itertools.islice(self._shelf.after(after), max(0, limit)))

    async def show(self, letter_id: str) -> DeadLetter:
        """Give one."""
        return self._shelf.get(letter_id)

    async def redrive(self, letter_id: str) -> None:
        """Put one back at the end of its group as if never tried."""
        self._dispatcher.check_open()
        letter = self._shelf.get(letter_id)
        envelope = letter.envelope
        if envelope is None:
            raise UndecodableError("This dead letter is no envelope; purge it")
        raw = letter.raw
        if isinstance(envelope.payload, ChatRequest):
            raw = encode(envelope.renewed(self._dispatcher.clock.time()))
        self._dispatcher.put(raw, envelope.session_key.token)
        self._shelf.discard(letter_id)

    async def purge(self, letter_id: str | None = None) -> int:
        """Delete one, or all with None; give how many were deleted."""
        if letter_id is None:
            return self._shelf.clear()
        self._shelf.discard(letter_id)
        return 1
