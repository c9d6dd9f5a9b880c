"""How far a partition is done, with the gaps.  Pure.

A group remembers one offset per partition: everything below is done.  What is done above it, while
something lower is not, travels as text beside it (the commit's metadata), so that a new owner of
the partition repeats none of it.  Brokers take 4096 bytes of such text, which bounds the span.
"""

import base64
import binascii

# Offsets from the lowest that is not done to the highest that was read; a bit each in the text.
MAX_SPAN = 16_384
# What fits into the text, should more be read all the same; the rest is repeated after a crash.
_MAX_BITS = 24_000
_VERSION = "1:"


class Progress:
    """One partition under one owner.

    Args:
        committed: what its group has committed; None: nothing yet.
        text: the text of that commit; what nobody here wrote counts as none.
    """

    def __init__(self, committed: int | None = None, text: str = "") -> None:
        self._base = committed
        self._done = _decoded(text) if committed is not None else 0
        self._next = committed
        self._unfinished: dict[int, None] = {}

    @property
    def next(self) -> int | None:
        """The offset behind the last one read; None: unknown yet."""
        return self._next

    @property
    def base(self) -> int | None:
        """The lowest offset that is not done; None: unknown yet."""
        return self._base

    @property
    def unfinished(self) -> int:
        """Records read and not done."""
        return len(self._unfinished)

    @property
    def lowest(self) -> int | None:
        """The lowest offset that was read and is not done; None: there is none."""
        return next(iter(self._unfinished), None)

    def read(self, offset: int) -> bool:
        """Note that the record at `offset` was read; return whether it is still to be done.

        Offsets come in rising order; those left out hold no records.
        """
        if self._base is None:
            self._base = offset
        self._next = offset + 1
        todo = offset >= self._base and not self._done >> (offset - self._base) & 1
        if todo:
            self._unfinished[offset] = None
        self._advance()
        return todo

    def finish(self, offset: int) -> None:
        """Note that a record is done; repeating it changes nothing."""
        if offset in self._unfinished and self._base is not None:
            del self._unfinished[offset]
            self._done |= 1 << (offset - self._base)
            self._advance()

    def commit(self) -> tuple[int, str] | None:
        """Give the offset and the text to commit; None: nothing is known to commit."""
        return None if self._base is None else (self._base, _encoded(self._done))

    def _advance(self) -> None:
        assert self._base is not None  # noqa: S101 - set by `read`
        assert self._next is not None  # noqa: S101
        base = next(iter(self._unfinished), max(self._next, self._base))
        self._done >>= base - self._base
        self._base = base


def count_done(text: str) -> int:
    """Count what a commit's text says is done above its offset."""
    return _decoded(text).bit_count()


def _encoded(done: int) -> str:
    done &= (1 << _MAX_BITS) - 1
    if not done:
        return ""
    raw = done.to_bytes((done.bit_length() + 7) // 8, "little")
    return _VERSION + base64.b64encode(raw).decode()


def _decoded(text: str) -> int:
    if not text.startswith(_VERSION):
        return 0
    try:
        raw = base64.b64decode(text.removeprefix(_VERSION), validate=True)
    except (binascii.Error, ValueError):
        return 0
    return int.from_bytes(raw[: _MAX_BITS // 8], "little")
