"""Reads a YAML text into leaves that know their lines."""

from collections.abc import Iterator
from typing import Any

import yaml

from turnline.config.layers import Leaf, Path

_MERGE_TAG = "tag:yaml.org,2002:merge"


def read_yaml(text: str, *, name: str) -> tuple[dict[Path, Leaf], list[str]]:
    """Parse one YAML document.

    Args:
        text: the file's content; empty means no settings.
        name: what faults and origins call the file.

    Returns:
        The leaves, and the faults: syntax, a key written twice, a key that is no text.
    """
    try:
        loader = yaml.SafeLoader(text)
    except yaml.YAMLError:
        return {}, [f"{name}: holds characters YAML does not allow; save it as plain UTF-8 text"]
    reader = _Reader(loader, name)
    try:
        root = loader.get_single_node()
        if root is None:
            return {}, []
        if isinstance(root, yaml.MappingNode):
            reader.read(root, ())
        elif not _is_null(root):
            reader.faults.append(f"{name}:1: the file is no block of settings; write key: value")
    except yaml.MarkedYAMLError as error:
        reader.faults.append(_syntax(error, name))
    finally:
        loader.dispose()
    return reader.leaves, reader.faults


class _Reader:
    def __init__(self, loader: yaml.SafeLoader, name: str) -> None:
        self.leaves: dict[Path, Leaf] = {}
        self.faults: list[str] = []
        self._loader = loader
        self._name = name
        self._open: set[int] = set()

    def read(self, node: yaml.MappingNode, path: Path) -> None:
        if id(node) in self._open:
            self.faults.append(f"{self._at(node)}: {_dotted(path)}: the block contains itself")
            return
        self._open.add(id(node))
        for key, value in self._entries(node, path):
            self._read_value(value, (*path, key))
        self._open.discard(id(node))

    def _read_value(self, node: yaml.Node, path: Path) -> None:
        if isinstance(node, yaml.MappingNode) and node.value:
            self.read(node, path)
            return
        value: Any = self._loader.construct_object(node, deep=True)
        if value is not None:
            self.leaves[path] = Leaf(value=value, origin=self._at(node))

    def _entries(self, node: yaml.MappingNode, path: Path) -> Iterator[tuple[str, yaml.Node]]:
        self._check_keys(node, path)
        # After the check, because it puts what `<<` brings in before the block's own keys.
        self._loader.flatten_mapping(node)
        entries = {key.value: value for key, value in node.value if isinstance(key.value, str)}
        yield from entries.items()

    def _check_keys(self, node: yaml.MappingNode, path: Path) -> None:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if key.tag == _MERGE_TAG:
                continue
            if not isinstance(key, yaml.ScalarNode):
                self.faults.append(f"{self._at(key)}: {_dotted(path)}: a key must be plain text")
                continue
            if key.value in lines:
                self.faults.append(
                    f"{self._at(key)}: {_dotted((*path, key.value))}: the key is written twice, "
                    f"first on line {lines[key.value]}; remove one"
                )
            lines.setdefault(key.value, key.start_mark.line + 1)

    def _at(self, node: yaml.Node) -> str:
        return f"{self._name}:{node.start_mark.line + 1}"


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _dotted(path: Path) -> str:
    return ".".join(path) or "the file"


def _syntax(error: yaml.MarkedYAMLError, name: str) -> str:
    mark = error.problem_mark or error.context_mark
    at = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
    parts = [part for part in (error.context, error.problem) if part]
    return f"{at}: the YAML is not well-formed: {', '.join(parts)}; check indentation and quotes"
