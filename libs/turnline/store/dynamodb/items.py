"""Items as DynamoDB has them: typed attributes, names that sort, values longer than an item.

Numbers travel as decimal text, so whole numbers of up to 38 digits are exact.  A value that is
longer than an item may be lies in pieces, `<name>#00`, `<name>#01`, ..., each with their count.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple, TypeAlias

# {"name": {"S": "text"}}, {"N": "1"}, {"B": b"bytes"}, {"BOOL": True}; `Any` as the client's types.
Item: TypeAlias = dict[str, Any]

EXPIRY = "expiry_time"
PIECE_BYTES = 380_000
# Of everything in one write: a transaction takes 4 MB, names and short attributes included.
MAX_WRITE_BYTES = 3_500_000


class Key(NamedTuple):
    """Names an item: values of the partition key and of the sort key."""

    partition: str
    sort: str


class Value(NamedTuple):
    """A value to write, in as many pieces as it takes."""

    sort: str
    content: bytes
    attributes: Item


def text(item: Mapping[str, Any], name: str) -> str | None:
    """Read a text; None if there is none."""
    found = item.get(name)
    return None if found is None else str(found["S"])


def number(item: Mapping[str, Any], name: str, default: int = 0) -> int:
    """Read a whole number."""
    found = item.get(name)
    return default if found is None else int(found["N"])


def raw(item: Mapping[str, Any], name: str) -> bytes | None:
    """Read bytes; None if there are none."""
    found = item.get(name)
    return None if found is None else bytes(found["B"])


def n(value: int) -> Item:
    """Write a whole number."""
    return {"N": str(value)}


def expiry(now: float, ttl: float) -> int:
    """Give the epoch second from which on something is expired; never early."""
    return ceil(now + ttl)


def expired(item: Mapping[str, Any], now: float) -> bool:
    """Whether an item is past its time: DynamoDB removes it when it gets to it, days later."""
    return EXPIRY in item and number(item, EXPIRY) <= now


def pieces(value: Value) -> Sequence[Item]:
    """Give the items of a value, in order and without their keys; at least one."""
    content = value.content
    parts = [content[at : at + PIECE_BYTES] for at in range(0, len(content), PIECE_BYTES)] or [b""]
    return [
        {
            "value": {"B": part},
            "pieces": n(len(parts)),
            **value.attributes,
        }
        for part in parts
    ]


def piece_name(name: str, number: int) -> str:
    """Name a piece; injective, for the number always has two digits."""
    return f"{name}#{number:02d}"


def whole(items: Iterable[Item], sort_key: str = "part") -> Sequence[tuple[str, bytes, Item]]:
    """Put pieces in the order of their names together: (name, value, first piece) each.

    A value of which a piece is missing is left out.
    """
    found: list[tuple[str, bytes, Item]] = []
    name, first, parts = "", {}, []  # type: str, Item, list[bytes]
    for item in items:
        its_name, place = item[sort_key]["S"][:-3], int(item[sort_key]["S"][-2:])
        if place == 0:
            name, first, parts = its_name, item, []
        elif its_name != name or place != len(parts):
            continue
        parts.append(raw(item, "value") or b"")
        if len(parts) == number(item, "pieces"):
            found.append((name, b"".join(parts), first))
    return found
