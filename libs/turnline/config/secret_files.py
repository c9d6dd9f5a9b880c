"""Puts the content of secret files in place of `<file:name>` (guide, `AK_SECRETS_PATH`)."""

import dataclasses
import re
from collections.abc import Callable, Mapping
from pathlib import Path as FilePath

from turnline.config.layers import Layer, Leaf, Path

MAX_SECRET_BYTES = 65_536

_REFERENCE = re.compile(r"<file:([^<>]*)>")


def substitute(
    leaves: Layer, *, directory: FilePath | None
) -> tuple[Mapping[Path, Leaf], list[str]]:
    """Replace each `<file:name>` in text by the file's content, less its last line break.

    Args:
        directory: where the files are; None when AK_SECRETS_PATH is not set.

    Returns:
        The leaves, those replaced marked secret, and the faults: a missing, unreadable or too
        large file, or a name that leads out of the directory.
    """
    replaced: dict[Path, Leaf] = {}
    faults: list[str] = []
    for path, leaf in leaves.items():
        replaced[path] = leaf
        if not isinstance(leaf.value, str) or not _REFERENCE.search(leaf.value):
            continue
        try:
            value = _REFERENCE.sub(_reader(directory), leaf.value)
        except _Unusable as error:
            faults.append(f"{leaf.origin}: {'.'.join(path)}: {error}")
            del replaced[path]
        else:
            replaced[path] = dataclasses.replace(leaf, value=value, secret=True)
    return replaced, faults


class _Unusable(Exception):
    pass


def _reader(directory: FilePath | None) -> Callable[[re.Match[str]], str]:
    def read(match: re.Match[str]) -> str:
        name = match[1]
        if directory is None:
            raise _Unusable(
                f"refers to the secret file {name!r}, but AK_SECRETS_PATH is not set; set it to "
                "the directory of that file"
            )
        if not name or FilePath(name).is_absolute() or ".." in FilePath(name).parts:
            raise _Unusable(f"{name!r} is no name of a file inside AK_SECRETS_PATH; correct it")
        return _content(directory / name)

    return read


def _content(file: FilePath) -> str:
    try:
        with file.open("rb") as stream:
            raw = stream.read(MAX_SECRET_BYTES + 1)
        text = raw.decode()
    except OSError as error:
        raise _Unusable(
            f"the secret file {file} cannot be read: {error.strerror}; mount it there, readable"
        ) from error
    except UnicodeDecodeError as error:
        raise _Unusable(f"the secret file {file} is no UTF-8 text; encode it") from error
    if len(raw) > MAX_SECRET_BYTES:
        raise _Unusable(f"the secret file {file} is over {MAX_SECRET_BYTES} bytes; use another")
    return text.removesuffix("\n").removesuffix("\r")
