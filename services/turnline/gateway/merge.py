"""Merging text chunks that wait for a slow client: fewer frames, the same text, the same places."""

from collections.abc import Iterable
from typing import Any

from turnline.push import Frame

# Bounds what one frame can grow to, and so what a full buffer can hold.
MAX_MERGED_CHARACTERS = 16_384

_OWN = frozenset({"delta", "event", "index", "first_index"})


def merge_adjacent(frames: Iterable[Frame]) -> list[Frame]:
    """Merge runs of adjacent text chunks of one stream.

    A merged frame carries the joined text, the `index` of its last chunk and the `first_index` of
    its first; nothing else is changed, dropped or moved.
    """
    merged: list[Frame] = []
    for frame in frames:
        if merged and _follows(merged[-1], frame):
            merged[-1] = _joined(merged[-1], frame)
        else:
            merged.append(frame)
    return merged


def _follows(first: Frame, second: Frame) -> bool:
    return (
        _is_text(first)
        and _is_text(second)
        and _first_index(second) == first["index"] + 1
        and _beside(first) == _beside(second)
        and len(first["delta"]) + len(second["delta"]) <= MAX_MERGED_CHARACTERS
    )


def _is_text(frame: Frame) -> bool:
    event = frame.get("event")
    return (
        isinstance(event, dict)
        and event.get("type") == "text_delta"
        and isinstance(frame.get("delta"), str)
        and event.get("content") == frame["delta"]
        and isinstance(frame.get("index"), int)
    )


def _beside(frame: Frame) -> tuple[dict[str, Any], dict[str, Any]]:
    """Everything of a text chunk but its text and place."""
    event = {key: value for key, value in frame["event"].items() if key != "content"}
    return {key: value for key, value in frame.items() if key not in _OWN}, event


def _first_index(frame: Frame) -> int:
    index: int = frame["first_index"] if "first_index" in frame else frame["index"]
    return index


def _joined(first: Frame, second: Frame) -> Frame:
    text = first["delta"] + second["delta"]
    event = {**second["event"], "content": text}
    return {**second, "delta": text, "event": event, "first_index": _first_index(first)}
