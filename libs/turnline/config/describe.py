"""Shows settings: as a list with origins, as YAML, and as a JSON Schema.  Secrets stay hidden."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml

from turnline.config.block import Block
from turnline.config.layers import Path
from turnline.config.load import Loaded
from turnline.config.redact import STARS, redacted
from turnline.config.settings import Settings

SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Described(NamedTuple):
    """One setting in use.

    Attributes:
        key: dotted.
        value: may be shown: secrets are stars, addresses have no password; None means unset.
        origin: `env AK_...`, `.env:LINE`, `config.yaml:LINE` or `default`.
    """

    key: str
    value: Any
    origin: str


def describe(loaded: Loaded) -> list[Described]:
    """List every setting in reading order."""
    return [
        Described(key, _shown(key, path[-1], value, loaded), loaded.origin(key))
        for path, value in _leaves(loaded.settings, ())
        for key in [".".join(path)]
    ]


def effective_yaml(loaded: Loaded) -> str:
    """Write every setting as YAML that loads to the same settings, but for hidden secrets."""
    return yaml.safe_dump(_tree(loaded.settings, (), loaded), sort_keys=False, allow_unicode=True)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a configuration file, with a description of every key."""
    schema = Settings.model_json_schema()
    return {"$schema": SCHEMA_DIALECT, **schema, "title": "Turnline settings"}


def _leaves(value: object, path: Path) -> Iterator[tuple[Path, Any]]:
    entries: Mapping[str, Any] = {}
    if isinstance(value, Block):
        entries = dict(value)
    elif isinstance(value, Mapping):
        entries = value
    if not entries:
        yield path, value
    for name, entry in entries.items():
        yield from _leaves(entry, (*path, name))


def _tree(value: object, path: Path, loaded: Loaded) -> object:
    if isinstance(value, Block):
        return {name: _tree(entry, (*path, name), loaded) for name, entry in value}
    if isinstance(value, Mapping):
        return {name: _tree(entry, (*path, name), loaded) for name, entry in value.items()}
    return _shown(".".join(path), path[-1], value, loaded)


def _shown(key: str, name: str, value: object, loaded: Loaded) -> object:
    return STARS if key in loaded.secret_keys else redacted(value, name=name)
