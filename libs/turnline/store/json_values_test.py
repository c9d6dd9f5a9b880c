"""What stores keep as JSON comes back as it was, or is refused."""

from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnline.store.json_values import MAX_DEPTH, decode_array, decode_object, encode_json

# A loaded machine is no reason to fail.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@UNTIMED
@given(value=st.dictionaries(st.text(), _JSON, max_size=4))
def test_an_object_comes_back_as_it_was(value: dict[str, Any]) -> None:
    assert decode_object(encode_json(value, name="state")) == value


@UNTIMED
@given(value=st.lists(_JSON, max_size=4))
def test_an_array_comes_back_as_it_was(value: list[Any]) -> None:
    assert decode_array(encode_json(value, name="items")) == value


def test_every_reading_is_a_fresh_copy() -> None:
    raw = encode_json({"x": [1]}, name="state")

    decode_object(raw)["x"].append(2)

    assert decode_object(raw) == {"x": [1]}


def test_mappings_and_tuples_come_back_as_objects_and_arrays() -> None:
    value = MappingProxyType({"x": (1, MappingProxyType({"y": ()}))})

    assert decode_object(encode_json(value, name="state")) == {"x": [1, {"y": []}]}


def _nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"x": value}
    return value


def test_the_deepest_allowed_value_is_kept() -> None:
    value = _nested(MAX_DEPTH)

    assert decode_object(encode_json(value, name="state")) == value


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"a": {"b": [1, {2}]}}, r"state\.a\.b\[1\] .* type set"),
        ({"a": float("inf")}, r"state\.a .* finite"),
        ({"a": {None: 1}}, r"state\.a .* keys must be texts"),
        ({"a": 2**64}, "state .* 64-bit"),
        ({"a": "\ud800"}, "state .* UTF-8"),
        (_nested(MAX_DEPTH + 1), "nested more than"),
    ],
    ids=["type", "infinite", "key", "integer", "text", "depth"],
)
def test_what_is_no_json_is_refused_saying_where(value: dict[str, Any], where: str) -> None:
    with pytest.raises(ValueError, match=where):
        encode_json(value, name="state")
