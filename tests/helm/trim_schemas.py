"""Makes the files in third_party that manifests are held against, of those their projects publish.

    PYTHONPATH=tests python -m helm.trim_schemas kubernetes swagger.json Deployment Service ...
    PYTHONPATH=tests python -m helm.trim_schemas crds crds.yaml Stream Consumer ...

prints what the named kinds need: of CustomResourceDefinitions the versions that are served.
Descriptions, most of the size, are left out; nothing else is changed.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import yaml

Json: TypeAlias = Any

_KINDS = "x-kubernetes-group-version-kind"


def trimmed_definitions(swagger: Mapping[str, Any], kinds: set[str]) -> dict[str, Any]:
    """Give the newest stable definition of each kind, and all that they refer to."""
    every = swagger["definitions"]
    wanted = [
        name
        for name, each in every.items()
        for said in each.get(_KINDS, ())
        if len(each[_KINDS]) == 1 and said["kind"] in kinds and _is_newest(name, said)
    ]
    found: dict[str, Any] = {}
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = without_descriptions(every[name])
            wanted += _references(every[name])
    return {"info": swagger["info"], "definitions": dict(sorted(found.items()))}


def trimmed_crds(text: str, kinds: set[str]) -> Iterator[dict[str, Any]]:
    """Give the definitions of the kinds, of one text of several documents."""
    for document in yaml.safe_load_all(text):
        if document and document["spec"]["names"]["kind"] in kinds:
            spec = document["spec"]
            spec["versions"] = [version for version in spec["versions"] if version["served"]]
            yield without_descriptions(document)


def without_descriptions(value: Json) -> Json:
    """Copy, less descriptions; a property of that name stays."""
    if isinstance(value, Mapping):
        return {
            name: without_descriptions(part)
            for name, part in value.items()
            if not (name == "description" and isinstance(part, str))
        }
    return [without_descriptions(part) for part in value] if isinstance(value, list) else value


def _is_newest(name: str, said: Mapping[str, str]) -> bool:
    newest = "v2" if said["kind"] == "HorizontalPodAutoscaler" else "v1"
    return said["version"] == newest and f".{newest}." in name


def _references(value: Json) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rpartition("/")[2]
        for part in value.values():
            yield from _references(part)
    elif isinstance(value, list):
        for part in value:
            yield from _references(part)


def main() -> None:
    """Print one file."""
    form, path, *kinds = sys.argv[1:]
    text = Path(path).read_text()
    if form == "kubernetes":
        print(json.dumps(trimmed_definitions(json.loads(text), set(kinds)), indent=1))
    else:
        print(yaml.safe_dump_all(trimmed_crds(text, set(kinds)), sort_keys=False), end="")


if __name__ == "__main__":
    main()
