"""The committed documents of `docs/api`, and whether what is said on the wire fits them."""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import yaml

ROOT = Path(__file__).absolute().parents[3]
DOCS = ROOT / "docs/api"

Document = Mapping[str, Any]


@cache
def document(name: str) -> Document:
    """Read a document by its file's name."""
    found: Document = yaml.safe_load((DOCS / name).read_text(encoding="utf-8"))
    return found


def faults(of: Document, schema: Mapping[str, Any], value: object) -> list[str]:
    """Say what of a value does not fit a schema of a document; empty where all does."""
    whole = {**schema, "components": of["components"]}
    checked = jsonschema_rs.Draft202012Validator(whole, validate_formats=True)
    return [f"{error.instance_path}: {error.message}" for error in checked.iter_errors(value)]


def resolved(of: Document, node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow references within a document to what they lead to."""
    while "$ref" in node:
        found: Any = of
        for name in node["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        node = found
    return node


def references(node: object) -> Iterator[str]:
    """Give every reference below a node."""
    if isinstance(node, Mapping):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for inner in node.values():
            yield from references(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from references(inner)
