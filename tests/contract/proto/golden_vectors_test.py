"""The golden vectors pin every message's bytes and JSON, in both directions."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message

from contract.proto.golden_cases import (
    ENVELOPES,
    GOLDEN,
    MODULES,
    PACKAGE,
    SERVICE_MESSAGES,
    new_message,
    proto_json,
)
from turnline.protocol import Unread
from turnline.protocol.attributes import dump_json
from turnline.protocol.codec import decode, encode
from turnline.protocol.json_body import decode_json_body, encode_json_body

VECTORS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text(encoding="utf-8")) for path in GOLDEN.glob("*.json")
}


def parsed(vector: dict[str, Any]) -> Message:
    message = new_message(vector["message"].removeprefix(f"{PACKAGE}."))
    message.ParseFromString(bytes.fromhex(vector["binary"]))
    return message


def kinds_in(message: Message) -> Iterator[str]:
    yield message.DESCRIPTOR.name
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        for item in value if field.is_repeated else [value]:
            yield from kinds_in(item)


def test_each_case_has_a_vector_and_each_vector_a_case() -> None:
    assert VECTORS.keys() == ENVELOPES.keys() | SERVICE_MESSAGES.keys()


def test_every_message_of_the_package_occurs_in_a_vector() -> None:
    declared: set[str] = set()
    for module in MODULES:
        declared.update(module.DESCRIPTOR.message_types_by_name)

    pinned = {kind for vector in VECTORS.values() for kind in kinds_in(parsed(vector))}

    assert declared <= pinned


@pytest.mark.parametrize("name", ENVELOPES)
def test_an_envelope_has_the_bytes_of_its_vector(name: str) -> None:
    assert encode(ENVELOPES[name]).hex() == VECTORS[name]["binary"]


@pytest.mark.parametrize("name", ENVELOPES)
def test_the_bytes_of_a_vector_are_its_envelope(name: str) -> None:
    assert decode(bytes.fromhex(VECTORS[name]["binary"])) == ENVELOPES[name]


@pytest.mark.parametrize("name", ENVELOPES)
def test_an_envelope_has_the_json_body_of_its_vector(name: str) -> None:
    body, attributes = encode_json_body(ENVELOPES[name])

    assert body == dump_json(VECTORS[name]["json_body"])
    assert attributes == VECTORS[name]["attributes"]


@pytest.mark.parametrize("name", ENVELOPES)
def test_the_json_body_of_a_vector_is_its_envelope(name: str) -> None:
    body = dump_json(VECTORS[name]["json_body"])

    # What only the Protobuf form can hold is not in the JSON form.
    expected = replace(ENVELOPES[name], unread=Unread())
    assert decode_json_body(body, VECTORS[name]["attributes"]) == expected


@pytest.mark.parametrize("name", sorted(VECTORS))
def test_the_bytes_of_a_vector_have_its_readable_form(name: str) -> None:
    assert proto_json(parsed(VECTORS[name])) == VECTORS[name]["value"]


@pytest.mark.parametrize("name", sorted(VECTORS.keys() - {"request-of-a-newer-minor-version"}))
def test_the_readable_form_of_a_vector_has_its_bytes(name: str) -> None:
    empty = new_message(VECTORS[name]["message"].removeprefix(f"{PACKAGE}."))

    message = json_format.ParseDict(VECTORS[name]["value"], empty)

    assert message.SerializeToString(deterministic=True).hex() == VECTORS[name]["binary"]
