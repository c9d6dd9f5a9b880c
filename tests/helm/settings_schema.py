"""The part of values.schema.json that is the product's own settings.

    PYTHONPATH=libs:tests python -m helm.settings_schema

writes it anew into the file; the rest of the file is kept by hand.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from turnline.config import json_schema

Json: TypeAlias = Any

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "turnline"
SCHEMA = CHART / "values.schema.json"
PREFIX = "Settings"
# What the chart itself says.
OWNED = {"Api": ("host", "port"), "WebsocketApi": ("push_port",)}
WITHOUT_PASSWORD = {"pattern": "^[^@]*$"}
CHART_TRANSPORTS = ("nats", "kafka", "sqs")


def settings_definitions() -> dict[str, Any]:
    """Give the definitions by name: the settings less secrets and less what the chart owns."""
    schema = json_schema()
    found = {
        PREFIX + name: _without(name, block)
        for name, block in {"": _root(schema), **schema["$defs"]}.items()
    }
    queues = found[f"{PREFIX}Queues"]["properties"]["type"]
    queues["enum"] = [kind for kind in queues["enum"] if kind in CHART_TRANSPORTS]
    for name in ("Session", "ResponseStore"):
        kind = found[PREFIX + name]["properties"]["type"]
        kind["enum"] = [each for each in kind["enum"] if each != "in_memory"]
        found[PREFIX + name]["required"] = ["type"]
    return found


def with_settings(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Give the chart's schema with today's settings."""
    kept = {name: each for name, each in schema["$defs"].items() if not name.startswith(PREFIX)}
    return {**schema, "$defs": {**kept, **settings_definitions()}}


def _root(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in schema.items() if name not in ("$schema", "$defs")}


def _without(name: str, block: Mapping[str, Any]) -> dict[str, Any]:
    trimmed: dict[str, Any] = _referring(block)
    trimmed.pop("title", None)
    if "properties" in trimmed:
        trimmed["properties"] = {
            key: _plain(key, each)
            for key, each in trimmed["properties"].items()
            if key not in OWNED.get(name, ()) and "writeOnly" not in json.dumps(each)
        }
    return trimmed


def _plain(key: str, each: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: part for name, part in each.items() if name not in ("title", "default")}
    return {**plain, **WITHOUT_PASSWORD} if key == "url" else plain


def _referring(value: Json) -> Json:
    """Copy, with references led to where the definitions are."""
    if isinstance(value, Mapping):
        return {
            name: (
                part.replace("#/$defs/", f"#/$defs/{PREFIX}")
                if name == "$ref"
                else _referring(part)
            )
            for name, part in value.items()
        }
    return [_referring(part) for part in value] if isinstance(value, list) else value


def main() -> None:
    """Write the file."""
    schema = with_settings(json.loads(SCHEMA.read_text()))
    SCHEMA.write_text(json.dumps(schema, indent=2) + "\n")


if __name__ == "__main__":
    main()
