"""Free-form JSON in Protobuf: `google.protobuf.Struct` to plain objects and back.

Written out by hand because the library's own conversion goes through reflection and costs several
times as much on the hot path.
"""

import math
from collections.abc import Mapping
from typing import Any

from google.protobuf.struct_pb2 import Struct, Value

from turnline.errors import InvalidRequestError
from turnline.protocol.json_value import (
    MAX_EXACT_INTEGER,
    MAX_JSON_DEPTH,
    check_json_object,
)


def write_struct(value: Mapping[str, Any], message: Struct, *, field: str) -> None:
    """Put an object into an empty message.

    Raises:
        InvalidRequestError: the object is not JSON, or out of bounds; names `field`.
    """
    check_json_object(value, field=field)
    _put_object(value, message)


def write_value(value: object, message: Value, *, field: str) -> None:
    """Put any JSON value into an empty message.

    Raises:
        InvalidRequestError: see `write_struct`.
    """
    check_json_object({"value": value}, field=field)
    _put(value, message)


def read_struct(message: Struct, *, field: str) -> dict[str, Any]:
    """Give the object in a message; whole numbers become `int` as far as they are exact.

    Raises:
        InvalidRequestError: it is nested too deep or holds a number that is not finite.
    """
    return _get_object(message, field, MAX_JSON_DEPTH)


def read_value(message: Value, *, field: str) -> object:
    """Give the JSON value in a message.

    Raises:
        InvalidRequestError: see `read_struct`.
    """
    return _get(message, field, MAX_JSON_DEPTH)


def _put_object(value: Mapping[str, Any], message: Struct) -> None:
    message.SetInParent()
    fields = message.fields
    for key, item in value.items():
        _put(item, fields[key])


def _put(value: object, message: Value) -> None:
    match value:
        case None:
            message.null_value = 0  # type: ignore[assignment]  # the enum's only value
        case str():
            message.string_value = value
        case bool():
            message.bool_value = value
        case int() | float():
            message.number_value = value
        case Mapping():
            _put_object(value, message.struct_value)
        case list() | tuple():
            message.list_value.SetInParent()
            for item in value:
                _put(item, message.list_value.values.add())
        case _:
            raise TypeError("not JSON; check_json_object lets none through")


def _get_object(message: Struct, field: str, room: int) -> dict[str, Any]:
    if not room:
        raise InvalidRequestError(
            f"{field} is nested deeper than {MAX_JSON_DEPTH} levels", field=field
        )
    return {key: _get(item, field, room - 1) for key, item in message.fields.items()}


def _get(message: Value, field: str, room: int) -> object:
    match message.WhichOneof("kind"):
        case "string_value":
            return message.string_value
        case "bool_value":
            return message.bool_value
        case "number_value":
            return _number(message.number_value, field)
        case "struct_value":
            return _get_object(message.struct_value, field, room)
        case "list_value":
            if not room:
                raise InvalidRequestError(
                    f"{field} is nested deeper than {MAX_JSON_DEPTH} levels", field=field
                )
            return [_get(item, field, room - 1) for item in message.list_value.values]
        case _:
            return None


def _number(value: float, field: str) -> int | float:
    if not math.isfinite(value):
        raise InvalidRequestError(f"{field} holds a number that is not finite", field=field)
    if value.is_integer() and abs(value) <= MAX_EXACT_INTEGER and not _is_minus_zero(value):
        return int(value)
    return value


def _is_minus_zero(value: float) -> bool:
    """Whether it is the one whole number that an `int` does not carry."""
    return value == 0 and math.copysign(1.0, value) < 0
