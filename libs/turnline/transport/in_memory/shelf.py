"""Where given-up messages lie: bounded, oldest first.  Knows nothing of queues or asyncio."""

import itertools
from collections import OrderedDict
from collections.abc import Iterator

from turnline.errors import NotFoundError
from turnline.protocol import Envelope
from turnline.telemetry import get_logger
from turnline.transport.port import DeadLetter

_log = get_logger("transport")


class Shelf:
    """Dead letters by number, in the order they came.

    Args:
        queue_name: `input` or `output`, for the log.
        max_letters: letters held; the oldest gives way, with a warning.
        max_bytes: bytes held; likewise, save that the newest stays whatever its size.
    """

    def __init__(self, *, queue_name: str, max_letters: int, max_bytes: int) -> None:
        self._queue_name = queue_name
        self._max_letters = max_letters
        self._max_bytes = max_bytes
        self._bytes = 0
        self._numbers = itertools.count(1)
        self._letters: OrderedDict[int, DeadLetter] = OrderedDict()

    def __len__(self) -> int:
        """Letters held."""
        return len(self._letters)

    def add(
        self, *, raw: bytes, envelope: Envelope | None, reason: str, at: float, attempt: int
    ) -> None:
        """Put a letter behind the others."""
        number = next(self._numbers)
        self._letters[number] = DeadLetter(
            id=str(number), reason=reason, at=at, attempt=attempt, raw=raw, envelope=envelope
        )
        self._bytes += len(raw)
        while len(self._letters) > self._max_letters or self._too_heavy():
            _, dropped = self._letters.popitem(last=False)
            self._bytes -= len(dropped.raw)
            self._warn_of(dropped)

    def after(self, letter_id: str) -> Iterator[DeadLetter]:
        """Walk the letters that came after the one of that id, which may be gone; all with ""."""
        start = _number(letter_id) if letter_id else 0
        return (letter for number, letter in self._letters.items() if number > start)

    def get(self, letter_id: str) -> DeadLetter:
        """Look at one.

        Raises:
            NotFoundError: none of that id.
        """
        letter = self._letters.get(_number(letter_id))
        if letter is None:
            raise _no_letter(letter_id)
        return letter

    def discard(self, letter_id: str) -> None:
        """Delete one.

        Raises:
            NotFoundError: none of that id.
        """
        letter = self._letters.pop(_number(letter_id), None)
        if letter is None:
            raise _no_letter(letter_id)
        self._bytes -= len(letter.raw)

    def clear(self) -> int:
        """Delete all; give how many there were."""
        count = len(self._letters)
        self._letters.clear()
        self._bytes = 0
        return count

    def _too_heavy(self) -> bool:
        return self._bytes > self._max_bytes and len(self._letters) > 1

    def _warn_of(self, dropped: DeadLetter) -> None:
        request_id = dropped.envelope.request_id if dropped.envelope else ""
        _log.warning(
            "dead_letter.dropped",
            queue=self._queue_name,
            letter_id=dropped.id,
            request_id=request_id,
            limit=self._max_letters,
        )


def _number(letter_id: str) -> int:
    if letter_id.isascii() and letter_id.isdigit() and len(letter_id) < 20:
        return int(letter_id)
    raise _no_letter(letter_id)


def _no_letter(letter_id: str) -> NotFoundError:
    return NotFoundError(f"There is no dead letter {letter_id[:40]!r}")
