"""The schemas that Kubernetes and the operators publish, made strict: an unknown field is an error.

Rules in CEL are not evaluated; a real API server does that.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import jsonschema_rs
import yaml

Json: TypeAlias = Any

THIRD_PARTY = Path(__file__).parents[2] / "third_party"
CRDS = (
    "keda/crds/crds.yaml",
    "nack/crds.yaml",
    "prometheus_operator/crds.yaml",
    "strimzi/crds.yaml",
)
_KINDS = "x-kubernetes-group-version-kind"
_DRAFT = "http://json-schema.org/draft-07/schema#"
_METADATA = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
# Of these the published schema says text; the server takes numbers too.
_NUMBER_OR_TEXT = {"anyOf": [{"type": "string"}, {"type": "number"}]}
_QUANTITIES = (
    "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
)


def faults_of(manifest: Mapping[str, Any]) -> list[str]:
    """List what the published schema of its kind does not allow.

    Raises:
        KeyError: no schema is known of its version and kind.
    """
    validator = _validators()[manifest["apiVersion"], manifest["kind"]]
    return [
        f"{manifest['kind']} {manifest['metadata']['name']}: "
        f"{'/'.join(map(str, error.instance_path))}: {error.message}"
        for error in validator.iter_errors(dict(manifest))
    ]


@cache
def _validators() -> dict[tuple[str, str], jsonschema_rs.Draft7Validator]:
    published = json.loads((THIRD_PARTY / "kubernetes" / "definitions.json").read_text())
    definitions = {name: _strict(each) for name, each in published["definitions"].items()}
    definitions |= {name: _NUMBER_OR_TEXT for name in _QUANTITIES if name in definitions}
    schemas = _kubernetes(published["definitions"]) | _custom()
    return {
        kind: jsonschema_rs.Draft7Validator(
            {"$schema": _DRAFT, **schema, "definitions": definitions}
        )
        for kind, schema in schemas.items()
    }


def _kubernetes(published: Mapping[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (_api_version(said["group"], said["version"]), said["kind"]): {
            "allOf": [{"$ref": f"#/definitions/{name}"}]
        }
        for name, each in published.items()
        for said in each.get(_KINDS, ())
    }


def _custom() -> dict[tuple[str, str], dict[str, Any]]:
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for file in CRDS:
        for crd in yaml.safe_load_all((THIRD_PARTY / file).read_text()):
            spec = crd["spec"]
            for version in spec["versions"]:
                schema = _strict(version["schema"]["openAPIV3Schema"])
                schema["properties"] |= {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": {"$ref": f"#/definitions/{_METADATA}"},
                }
                kind = (_api_version(spec["group"], version["name"]), spec["names"]["kind"])
                found[kind] = schema
    return found


def _api_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def _strict(schema: Json) -> Json:
    """Copy a structural schema as JSON Schema that refuses fields it does not name."""
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if isinstance(schema, str):
        # Go's mark for any case, which JSON Schema's expressions lack.
        return schema.replace("(?i)", "")
    if not isinstance(schema, Mapping):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return dict(_NUMBER_OR_TEXT)
    strict = {
        name: (
            {key: _strict(part) for key, part in value.items()}
            if name == "properties"
            else _strict(value)
        )
        for name, value in schema.items()
        if name not in ("default", "format") and not name.startswith("x-")
    }
    loose = schema.get("x-kubernetes-preserve-unknown-fields")
    if "properties" in schema and "additionalProperties" not in schema and not loose:
        strict["additionalProperties"] = False
    if schema.get("nullable"):
        return {"anyOf": [{"type": "null"}, strict]}
    return strict
