"""The JSON Schema that the AsyncAPI project publishes, fetched once by npm."""

import json
from pathlib import Path
from typing import Any

from turnline.testing.servers.npm_packages import npm_packages

PINNED = Path(__file__).with_name("asyncapi_specs")


def asyncapi_schema(version: str) -> dict[str, Any]:
    """Give the schema of documents of a version of AsyncAPI."""
    specs = npm_packages("asyncapi-specs", PINNED) / "@asyncapi/specs/schemas"
    found: dict[str, Any] = json.loads((specs / f"{version}-without-$id.json").read_text())
    return found
