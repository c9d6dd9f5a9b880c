"""Says what is wrong with settings, one line per fault: origin, key, fault, fix."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo

from turnline.config.layers import Layer, Leaf, Path
from turnline.config.redact import redacted
from turnline.config.suggest import environment_name, fields, nearest_key

_SHOWN_CHARACTERS = 60


def describe_faults(error: ValidationError, leaves: Layer) -> list[str]:
    """Turn a validation error into lines; secrets and unknown keys' values are never shown."""
    lines = []
    for details in error.errors(include_url=False):
        path = tuple(str(part) for part in details["loc"])
        raised = details.get("ctx", {}).get("error", details["msg"])
        fault = _Fault(
            kind=details["type"],
            path=path,
            value=details["input"],
            text=str(raised),
            leaf=_leaf(path, leaves),
            field=fields().get(path),
        )
        origin = fault.leaf.origin if fault.leaf else "default"
        lines.append(f"{origin}: {'.'.join(path)}: {_what(fault)}")
    return lines


def limit(field: FieldInfo, bound: str) -> int | float | None:
    """Return a field's `ge`, `le`, `min_length` or `max_length`; None if it has none."""
    return next((getattr(rule, bound) for rule in field.metadata if hasattr(rule, bound)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fault:
    """One finding: pydantic's `kind` and `text`, and what was written where.

    `leaf` is None when nothing was written, `field` when no setting has that name.
    """

    kind: str
    path: Path
    value: Any
    text: str
    leaf: Leaf | None
    field: FieldInfo | None


def _leaf(path: Path, leaves: Layer) -> Leaf | None:
    """The leaf at a path, else the first one in the block of that name or around it."""
    for length in range(len(path), 0, -1):
        head = path[:length]
        for other, leaf in leaves.items():
            if other[:length] == head:
                return leaf
    return None


def _what(fault: _Fault) -> str:
    match fault.kind:
        case "extra_forbidden":
            return _unknown(fault)
        case "missing":
            return f"must be set when its block is declared; set it to {_allowed(fault.field)}"
        case "model_type":
            return "is one value where a block of keys belongs; write its keys below it"
        case "value_error":
            return fault.text
        case _ if isinstance(fault.value, Mapping):
            return f"is a block where one value belongs; use {_allowed(fault.field)}"
        case "string_type":
            return f"{_shown(fault)} is no text; put it in quotes"
        case "literal_error":
            return _not_a_choice(fault)
        case _:
            return f"{_shown(fault)} is not allowed; use {_allowed(fault.field)}"


def _unknown(fault: _Fault) -> str:
    nearest = nearest_key(fault.path)
    if nearest is None:
        siblings = [key[-1] for key in fields() if key[:-1] == fault.path[:-1]]
        return f"no setting has this name; here can stand {', '.join(siblings)}"
    variable = fault.leaf is not None and fault.leaf.origin.startswith(("env ", ".env"))
    name = environment_name(nearest) if variable else ".".join(nearest)
    return f"no setting has this name; did you mean {name}?"


def _not_a_choice(fault: _Fault) -> str:
    text = f"{_shown(fault)} is not allowed; use {_allowed(fault.field)}"
    choices = _choices(fault.field.annotation) if fault.field else ()
    close = difflib.get_close_matches(str(fault.value).lower(), choices, n=1)
    return f"{text}; did you mean {close[0]}?" if close else text


def _shown(fault: _Fault) -> str:
    hidden = fault.field is None or SecretStr in _kinds(fault.field.annotation)
    if hidden or (fault.leaf is not None and fault.leaf.secret):
        return "the value (not shown)"
    text = repr(redacted(fault.value, name=fault.path[-1]))
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."


def _allowed(field: FieldInfo | None) -> str:
    if field is None:
        return "one of the documented values"
    choices = _choices(field.annotation)
    if choices:
        return f"one of {', '.join(choices)}"
    kinds = _kinds(field.annotation)
    if bool in kinds:
        return "true or false"
    if int in kinds:
        return f"a whole number from {limit(field, 'ge')} to {limit(field, 'le')}"
    if float in kinds:
        return f"a number from {limit(field, 'ge')} to {limit(field, 'le')}"
    return f"text{_length(field)}"


def _kinds(annotation: object) -> tuple[Any, ...]:
    """An annotation and all it is made of: `Annotated`, unions and literals taken apart."""
    return (annotation, *(kind for inner in get_args(annotation) for kind in _kinds(inner)))


def _choices(annotation: object) -> tuple[str, ...]:
    return tuple(kind for kind in _kinds(annotation) if isinstance(kind, str))


def _length(field: FieldInfo) -> str:
    low, high = limit(field, "min_length"), limit(field, "max_length")
    at_least = "" if low is None else f" of at least {low} character(s)"
    return at_least if high is None else f"{at_least} and at most {high}"
