"""Reads `AK_` variables, from the environment or a `.env` file, into leaves.

pydantic-settings takes each variable apart (nesting, case, JSON); it is asked about one at a time,
so that every leaf and every fault knows its variable.
"""

import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dotenv.parser import parse_stream
from pydantic import create_model
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsError

from turnline.config.layers import Layer, Leaf, Path, flatten, overlay
from turnline.config.settings import Settings
from turnline.config.suggest import environment_name, nearest_key

PREFIX = "AK_"
DELIMITER = "__"
CONFIG_PATH = "AK_CONFIG_PATH_OVERRIDE"
SECRETS_PATH = "AK_SECRETS_PATH"
POD_IP = "AK_POD_IP"

NOT_SETTINGS = frozenset({CONFIG_PATH, SECRETS_PATH, POD_IP})

# Kubernetes sets variables for every Service of the namespace; of one named `ak-gateway` they
# begin with AK_GATEWAY_ (kubernetes.io, "Accessing the Service").
_SERVICE_LINK = re.compile(
    r"(_SERVICE_HOST|_SERVICE_PORT(_[A-Z0-9_]+)?|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)=.*"
    r"|_PORT=(tcp|udp|sctp)://.*"
)


_FIELDS: dict[str, Any] = {
    name: (field.annotation, field) for name, field in Settings.model_fields.items()
}
# The settings in the form pydantic-settings reads.
_Tree = create_model("_Tree", __base__=BaseSettings, **_FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One variable that is set to something.

    Attributes:
        name: as written.
        value: never empty.
        origin: where it stands, for people.
    """

    name: str
    value: str
    origin: str


def environment_variables(environ: Mapping[str, str]) -> list[Variable]:
    """Pick the `AK_` variables out of an environment, whatever the case of their names."""
    return [
        Variable(name=name, value=value, origin=f"env {name}")
        for name, value in sorted(environ.items())
        if value and name.upper().startswith(PREFIX) and not _is_service_link(name, value)
    ]


def _is_service_link(name: str, value: str) -> bool:
    return DELIMITER not in name and bool(_SERVICE_LINK.search(f"{name}={value}"))


def dotenv_variables(text: str) -> tuple[list[Variable], list[str]]:
    """Pick the `AK_` variables out of a `.env` text, and the faults of its lines.

    Of a name written twice the last counts.  `${...}` is left as it is.
    """
    found: dict[str, Variable] = {}
    faults: list[str] = []
    for binding in parse_stream(io.StringIO(text)):
        line = binding.original.line
        if binding.error:
            faults.append(f".env:{line}: the line cannot be read; write NAME=value, one per line")
        elif binding.key and binding.value and binding.key.upper().startswith(PREFIX):
            origin = f".env:{line}"
            found[binding.key] = Variable(name=binding.key, value=binding.value, origin=origin)
    return list(found.values()), faults


def control(variables: Iterable[Variable], name: str) -> str:
    """Return the value of a variable that is no setting; empty when it is not set."""
    return next((v.value for v in variables if v.name.upper() == name), "")


def read_variables(variables: Iterable[Variable]) -> tuple[dict[Path, Leaf], list[str]]:
    """Turn variables into leaves; a deeper name wins over a block's JSON.

    Returns:
        The leaves, and the faults: unknown names, values that are no JSON, a name set twice.
    """
    source = EnvSettingsSource(
        _Tree, case_sensitive=False, env_prefix=PREFIX, env_nested_delimiter=DELIMITER
    )
    layers: list[tuple[int, Layer]] = []
    faults: list[str] = []
    seen: dict[str, Variable] = {}
    for variable in variables:
        name = variable.name.lower()
        if name.upper() in NOT_SETTINGS:
            continue
        if seen.setdefault(name, variable).value != variable.value:
            faults.append(
                f"{variable.origin}: is also set as {seen[name].name}, to another value; the case "
                "of letters does not matter, so remove one"
            )
            continue
        try:
            tree = _one(source, name, variable.value)
        except SettingsError:
            faults.append(
                f"{variable.origin}: is not valid JSON; a block or list is written as JSON, or a "
                f"block key by key as {variable.name}{DELIMITER}<KEY>"
            )
            continue
        if not tree:
            faults.append(_unknown(variable))
        layers.append((name.count(DELIMITER), _leaves(tree, variable.origin)))
    return overlay(layer for _, layer in sorted(layers, key=lambda entry: entry[0])), faults


def _leaves(tree: Mapping[str, Any], origin: str) -> Layer:
    return flatten(tree, lambda _: origin)


def _one(source: EnvSettingsSource, name: str, value: str) -> dict[str, Any]:
    source.env_vars = {name: value}
    return source()


def _unknown(variable: Variable) -> str:
    path = tuple(variable.name[len(PREFIX) :].lower().split(DELIMITER))
    nearest = nearest_key(path)
    hint = f"did you mean {environment_name(nearest)}?" if nearest else "remove it"
    return f"{variable.origin}: no setting has this name; {hint}"
