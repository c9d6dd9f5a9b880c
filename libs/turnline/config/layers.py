"""Settings before they are checked: leaves with their origins, and how layers of them merge."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One value as a source gave it.

    Attributes:
        value: a scalar or a list; an empty dict stands for a declared block without keys.
        origin: where it was written: `env AK_...`, `.env:LINE` or `config.yaml:LINE`.
        secret: the value was read from a secret's file and must not be shown.
    """

    value: Any
    origin: str
    secret: bool = False


Layer = Mapping[Path, Leaf]


def flatten(tree: Mapping[str, Any], origin_of: Callable[[Path], str]) -> dict[Path, Leaf]:
    """Take a tree apart into leaves; a None counts as not written."""
    leaves: dict[Path, Leaf] = {}

    def visit(path: Path, value: object) -> None:
        if isinstance(value, Mapping) and value:
            for key, entry in value.items():
                visit((*path, str(key)), entry)
        elif value is not None and path:
            leaves[path] = Leaf(value=value, origin=origin_of(path))

    visit((), tree)
    return leaves


def overlay(layers: Iterable[Layer]) -> dict[Path, Leaf]:
    """Merge layers leaf by leaf, lowest first; a later layer's leaf replaces what it contradicts.

    A block merges with a block.  A scalar over a block, or a block over a scalar, replaces it.
    """
    merged: dict[Path, Leaf] = {}
    for layer in layers:
        for path, leaf in layer.items():
            _put(merged, path, leaf)
    return merged


def build(leaves: Layer) -> dict[str, Any]:
    """Put leaves together into a tree; the inverse of `flatten`."""
    tree: dict[str, Any] = {}
    for path, leaf in leaves.items():
        block = tree
        for key in path[:-1]:
            block = block.setdefault(key, {})
        block[path[-1]] = leaf.value
    return tree


def _put(merged: dict[Path, Leaf], path: Path, leaf: Leaf) -> None:
    below = [other for other in merged if len(other) > len(path) and other[: len(path)] == path]
    if below and leaf.value == {}:
        return
    for other in below:
        del merged[other]
    for length in range(1, len(path)):
        merged.pop(path[:length], None)
    merged[path] = leaf
