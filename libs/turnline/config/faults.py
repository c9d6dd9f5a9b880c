"""Says what is wrong with settings, one line per fault: origin, key, fault, fix."""

import difflib
from collections.abc import Mapping
from typing import Any, get_args

import annotated_types
from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from turnline.config.layers import Layer, Leaf, Path
from turnline.config.redact import redacted
from turnline.config.suggest import environment_name, fields, nearest_key

_SHOWN_CHARACTERS = 60


def describe_faults(error: ValidationError, leaves: Layer) -> list[str]:
    """Turn a validation error into lines; secrets and unknown keys' values are never shown."""
    return [_line(details, leaves) for details in error.errors(include_url=False)]


def _line(details: ErrorDetails, leaves: Layer) -> str:
    path = tuple(str(part) for part in details["loc"])
    leaf = _leaf(path, leaves)
    field = fields().get(path)
    what = _what(details, path, leaf, field)
    return f"{leaf.origin if leaf else 'default'}: {'.'.join(path)}: {what}"


def _leaf(path: Path, leaves: Layer) -> Leaf | None:
    """The leaf at a path, else the first one in the block of that name or around it."""
    for length in range(len(path), 0, -1):
        head = path[:length]
        for other, leaf in leaves.items():
            if other[:length] == head:
                return leaf
    return None


def _what(details: ErrorDetails, path: Path, leaf: Leaf | None, field: FieldInfo | None) -> str:
    value = details["input"]
    match details["type"]:
        case "extra_forbidden":
            return _unknown(path, leaf)
        case "missing":
            return f"must be set when its block is declared; set it to {_allowed(field)}"
        case "model_type":
            return "is one value where a block of keys belongs; write its keys below it"
        case "value_error":
            return str(details.get("ctx", {}).get("error", details["msg"]))
        case _ if isinstance(value, Mapping):
            return f"is a block where one value belongs; use {_allowed(field)}"
        case "string_type":
            return f"{_shown(value, path, leaf, field)} is no text; put it in quotes"
        case "literal_error":
            return _not_allowed(value, path, leaf, field)
        case _:
            return f"{_shown(value, path, leaf, field)} is not allowed; use {_allowed(field)}"


def _unknown(path: Path, leaf: Leaf | None) -> str:
    nearest = nearest_key(path)
    if nearest is None:
        siblings = [key[-1] for key in fields() if key[:-1] == path[:-1]]
        return f"no setting has this name; here can stand {', '.join(siblings)}"
    in_environment = leaf is not None and leaf.origin.startswith(("env ", ".env"))
    name = environment_name(nearest) if in_environment else ".".join(nearest)
    return f"no setting has this name; did you mean {name}?"


def _not_allowed(value: object, path: Path, leaf: Leaf | None, field: FieldInfo | None) -> str:
    text = f"{_shown(value, path, leaf, field)} is not allowed; use {_allowed(field)}"
    choices = _choices(field.annotation) if field else ()
    close = difflib.get_close_matches(str(value).lower(), choices, n=1)
    return f"{text}; did you mean {close[0]}?" if close else text


def _shown(value: object, path: Path, leaf: Leaf | None, field: FieldInfo | None) -> str:
    hidden = field is None or SecretStr in _kinds(field.annotation)
    if hidden or (leaf is not None and leaf.secret):
        return "the value (not shown)"
    shown = redacted(value, name=path[-1])
    text = repr(shown)
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
        return f"a whole number{_range(field)}"
    if float in kinds:
        return f"a number{_range(field)}"
    return f"text{_length(field)}"


def _kinds(annotation: object) -> tuple[Any, ...]:
    """An annotation and all it is made of: `Annotated`, unions and literals taken apart."""
    return (annotation, *(kind for inner in get_args(annotation) for kind in _kinds(inner)))


def _choices(annotation: object) -> tuple[str, ...]:
    return tuple(kind for kind in _kinds(annotation) if isinstance(kind, str))


def _range(field: FieldInfo) -> str:
    low = [rule.ge for rule in field.metadata if isinstance(rule, annotated_types.Ge)]
    high = [rule.le for rule in field.metadata if isinstance(rule, annotated_types.Le)]
    return f" from {low[0]} to {high[0]}" if low and high else ""


def _length(field: FieldInfo) -> str:
    low = [rule.min_length for rule in field.metadata if isinstance(rule, annotated_types.MinLen)]
    high = [rule.max_length for rule in field.metadata if isinstance(rule, annotated_types.MaxLen)]
    at_least = f" of at least {low[0]} character(s)" if low else ""
    return f"{at_least} and at most {high[0]}" if low and high else at_least
