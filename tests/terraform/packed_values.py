"""Reads the values that Terraform sends to a provider: MessagePack, as far as it uses it."""

import struct
from typing import Any


class Unknown:
    """A value that is known after apply only."""


UNKNOWN = Unknown()

_FIXED = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q"} | {
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_LENGTHS = {1: ">B", 2: ">H", 4: ">I"}
# First byte -> bytes of the length that follows.
_TEXTS = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_ARRAYS = {0xDC: 2, 0xDD: 4}
_MAPS = {0xDE: 2, 0xDF: 4}
_EXTENSIONS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_LONG_EXTENSIONS = {0xC7: 1, 0xC8: 2, 0xC9: 4}


def unpacked(data: bytes) -> Any:  # noqa: ANN401 - any value of Terraform
    """Give the value: None, texts, numbers, lists, maps, `UNKNOWN`."""
    return _Reader(data).value()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def value(self) -> Any:  # noqa: ANN401 - as above
        first = self._number(">B")
        if first < 0x80:
            return first
        if first < 0x90:
            return self._map(first & 0x0F)
        if first < 0xA0:
            return self._array(first & 0x0F)
        if first < 0xC0:
            return self._text(first & 0x1F)
        if first >= 0xE0:
            return first - 0x100
        return self._marked(first)

    def _marked(self, first: int) -> Any:  # noqa: ANN401 - as above
        if first in _FIXED:
            return _FIXED[first]
        if first in _NUMBERS:
            return self._number(_NUMBERS[first])
        if first in _TEXTS:
            return self._text(self._number(_LENGTHS[_TEXTS[first]]))
        if first in _ARRAYS:
            return self._array(self._number(_LENGTHS[_ARRAYS[first]]))
        if first in _MAPS:
            return self._map(self._number(_LENGTHS[_MAPS[first]]))
        if first in _LONG_EXTENSIONS:
            self._take(self._number(_LENGTHS[_LONG_EXTENSIONS[first]]) + 1)
        else:
            self._take(_EXTENSIONS[first] + 1)
        return UNKNOWN

    def _map(self, count: int) -> dict[str, Any]:
        return {self.value(): self.value() for _ in range(count)}

    def _array(self, count: int) -> list[Any]:
        return [self.value() for _ in range(count)]

    def _text(self, length: int) -> str:
        return self._take(length).decode()

    def _number(self, form: str) -> Any:  # noqa: ANN401 - whole or not
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken
