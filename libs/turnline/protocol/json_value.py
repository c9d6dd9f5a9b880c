"""Free-form JSON: which values survive every wire format, and within which bounds.

Numbers travel as doubles in `google.protobuf.Struct`, and Protobuf readers in every language stop
at 100 nested messages; what does not fit is refused at the door, never rounded or lost on the way.
"""

import math
from collections.abc import Mapping

from turnline.errors import Code, InvalidRequestError
from turnline.protocol.chat import JsonObject

MAX_JSON_DEPTH = 24
"""Objects and lists inside each other; each level costs up to 3 of Protobuf's 100."""

MAX_EXACT_INTEGER = 2**53
"""Largest integer a double holds without rounding."""


def check_json_object(value: object, *, field: str) -> JsonObject:
    """Return `value` if it is a JSON object that every wire format carries unchanged.

    Raises:
        InvalidRequestError: naming `field`; MALFORMED_BODY when it is no JSON object at all,
            INVALID_REQUEST when it is one out of bounds.  The text holds none of its content.
    """
    if not isinstance(value, Mapping):
        raise malformed(f"{field} must be an object", field)
    _check(value, field, MAX_JSON_DEPTH)
    return value


def check_text(value: str, *, field: str) -> str:
    """Return `value` if it is valid Unicode (a Python string may hold half a surrogate pair).

    Raises:
        InvalidRequestError: naming `field`.
    """
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            message = f"{field} is not valid Unicode text"
            raise InvalidRequestError(message, field=field) from None
    return value


def malformed(message: str, field: str) -> InvalidRequestError:
    """Make the error for a value of a wrong type."""
    return InvalidRequestError(message, field=field, code=Code.MALFORMED_BODY)


def _check(value: object, field: str, room: int) -> None:
    match value:
        case None | bool():
            return
        case str():
            check_text(value, field=field)
        case int():
            if abs(value) > MAX_EXACT_INTEGER:
                message = f"{field} holds an integer beyond 2^53; send it as a string"
                raise InvalidRequestError(message, field=field)
        case float():
            if not math.isfinite(value):
                raise InvalidRequestError(f"{field} holds a number that is not finite", field=field)
        case Mapping() | list() | tuple():
            _check_nested(value, field, room - 1)
        case _:
            raise malformed(f"{field} holds a value that is not JSON", field)


def _check_nested(
    value: Mapping[object, object] | list[object] | tuple[object, ...], field: str, room: int
) -> None:
    if room < 0:
        message = f"{field} is nested deeper than {MAX_JSON_DEPTH} levels"
        raise InvalidRequestError(message, field=field)
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                raise malformed(f"{field} holds a key that is not a string", field)
            check_text(key, field=field)
            _check(item, field, room)
    else:
        for item in value:
            _check(item, field, room)
