"""Names of settings: which exist, and which one a mistyped name most likely meant."""

import difflib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import get_args

from pydantic.fields import FieldInfo

from turnline.config.block import Block
from turnline.config.layers import Path
from turnline.config.settings import Settings


@cache
def fields() -> dict[Path, FieldInfo]:
    """All settings and blocks, in reading order."""
    return dict(_walk(Settings, ()))


def block_of(annotation: object) -> type[Block] | None:
    """Return the block a field holds, looking through `| None`; None for a plain value."""
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, Block):
            return candidate
    return None


def nearest_key(path: Path) -> Path | None:
    """Return the setting or block whose name is closest to an unknown one; None if none is.

    A key put in the wrong block is found by its last word.
    """
    return (
        _closest(path, fields(), cutoff=0.85)
        or _closest(path, [key for key in fields() if key[:-1] == path[:-1]], cutoff=0.8)
        or _namesake(path)
        or _closest(path, fields(), cutoff=0.75)
    )


def _namesake(path: Path) -> Path | None:
    same = [key for key in fields() if key[-1] == path[-1]]
    return same[0] if len(same) == 1 else _closest(path, same, cutoff=0.0)


def _closest(path: Path, keys: Iterable[Path], *, cutoff: float) -> Path | None:
    known = {".".join(key): key for key in keys}
    close = difflib.get_close_matches(".".join(path), known, n=1, cutoff=cutoff)
    return known[close[0]] if close else None


def environment_name(path: Path) -> str:
    """Return the variable that sets a key."""
    return "AK_" + "__".join(path).upper()


def _walk(block: type[Block], path: Path) -> Iterator[tuple[Path, FieldInfo]]:
    for name, field in block.model_fields.items():
        yield (*path, name), field
        inner = block_of(field.annotation)
        if inner is not None:
            yield from _walk(inner, (*path, name))
