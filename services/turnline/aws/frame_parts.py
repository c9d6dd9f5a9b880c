"""Frames that are larger than API Gateway takes, in parts.  Pure."""

from collections.abc import Iterator

import orjson

from turnline.push import Frame

# https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html: 128 KB a message.
MAX_BYTES = 128 * 1024
# What stands around the text, with room to spare.
_AROUND_BYTES = 8 * 1024
_TEXTS = ("result", "delta")


def parts_of(frame: Frame, *, max_bytes: int = MAX_BYTES) -> list[Frame]:
    """Give a frame as it is, or cut its text into parts where it is too large.

    Parts are frames as the whole one, each with a piece of the text (`result` or `delta`), and
    `part` (from 0) and `parts` beside it.  `done` is true in the last one alone.  What has no text
    to cut is given as it is.
    """
    if len(orjson.dumps(frame)) <= max_bytes:
        return [frame]
    name = next((name for name in _TEXTS if isinstance(frame.get(name), str)), None)
    if name is None:
        return [frame]
    # An event repeats its delta.
    rest = {key: value for key, value in frame.items() if key not in (name, "event")}
    pieces = list(_pieces(frame[name], max_bytes - _AROUND_BYTES))
    parts: list[Frame] = []
    for number, piece in enumerate(pieces):
        part = {**rest, name: piece, "part": number, "parts": len(pieces)}
        if "done" in rest:
            part["done"] = rest["done"] and number == len(pieces) - 1
        parts.append(part)
    return parts


def _pieces(text: str, max_bytes: int) -> Iterator[str]:
    """Cut a text into pieces of at most so many bytes of JSON, between characters."""
    start, size = 0, 2
    for end, character in enumerate(text):
        wide = len(orjson.dumps(character)) - 2
        if size + wide > max_bytes and end > start:
            yield text[start:end]
            start, size = end, 2
        size += wide
    yield text[start:]
