"""JSON as stores keep it: strict on the way in, a fresh copy on the way out.

For session state and history items, which agents make and change.  Anything JSON would alter
silently (numbers as keys, NaN, dates, sets) is refused, so that what a turn saved is what the next
turn finds, whatever store keeps it.  The one change: a tuple comes back as a list.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

MAX_DEPTH = 100


def encode_json(value: Mapping[str, Any] | Sequence[Any], *, name: str) -> bytes:
    """Give the UTF-8 JSON text of an object or array; `name` says in errors whose it is.

    Raises:
        ValueError: something in it is no JSON, an integer is over 64 bits, a text is no Unicode,
            or it is nested more than `MAX_DEPTH` deep (itself within itself included).
    """
    _check(value, name, 0)
    try:
        return orjson.dumps(value, default=_as_dict)
    except TypeError as error:
        raise ValueError(f"{name} is not JSON: {error}") from error


def decode_object(raw: bytes) -> dict[str, Any]:
    """Read what `encode_json` gave of an object; every call makes new objects."""
    value: dict[str, Any] = orjson.loads(raw)
    return value


def decode_array(raw: bytes) -> list[Any]:
    """Read what `encode_json` gave of an array; every call makes new objects."""
    value: list[Any] = orjson.loads(raw)
    return value


def _check(value: object, path: str, depth: int) -> None:
    match value:
        case None | str() | int():
            return
        case float():
            if not math.isfinite(value):
                raise ValueError(f"{path} is not JSON: {value} is no finite number")
        case Mapping():
            _check_depth(path, depth)
            strange = [key for key in value if not isinstance(key, str)]
            if strange:
                raise ValueError(
                    f"{path} is not JSON: its keys must be texts, not {strange[0]!r:.40}"
                )
            for key, item in value.items():
                _check(item, f"{path}.{key:.40}", depth + 1)
        case list() | tuple():
            _check_depth(path, depth)
            for place, item in enumerate(value):
                _check(item, f"{path}[{place}]", depth + 1)
        case _:
            raise ValueError(f"{path} is not JSON: it is of type {type(value).__name__}")


def _check_depth(path: str, depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise ValueError(f"{path[:80]}... is nested more than {MAX_DEPTH} deep")


def _as_dict(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"it holds a {type(value).__name__}")
