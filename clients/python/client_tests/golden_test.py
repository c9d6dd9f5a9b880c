"""The golden vectors of `turnline.v1`, in both directions, by the stubs this package brings."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from turnline_client._wire import chat_pb2, chat_service_pb2, chunk_pb2, failure_pb2
from turnline_client.messages import read_chunk, read_state
from turnline_client.values import TurnState

MODULES = (chat_pb2, chat_service_pb2, chunk_pb2, failure_pb2)
DECLARED = {
    name: GetMessageClass(descriptor)
    for module in MODULES
    for name, descriptor in module.DESCRIPTOR.message_types_by_name.items()
}
VECTORS: dict[str, dict[str, Any]] = {
    path.stem: vector
    for path in sorted(Path(os.environ["TURNLINE_GOLDEN"]).glob("*.json"))
    if (vector := json.loads(path.read_text(encoding="utf-8")))["message"].rpartition(".")[2]
    in DECLARED
}


def parsed(vector: dict[str, Any]) -> Message:
    kind: type[Message] = DECLARED[vector["message"].rpartition(".")[2]]
    return kind.FromString(bytes.fromhex(vector["binary"]))


def kinds_in(message: Message) -> Iterator[str]:
    yield message.DESCRIPTOR.name
    for field, value in message.ListFields():
        if field.message_type is not None:
            for item in value if field.is_repeated else [value]:
                yield from kinds_in(item)


@pytest.mark.parametrize("name", VECTORS)
def test_the_bytes_of_a_vector_have_its_readable_form(name: str) -> None:
    found = json_format.MessageToDict(parsed(VECTORS[name]), preserving_proto_field_name=True)

    assert found == VECTORS[name]["value"]


@pytest.mark.parametrize("name", VECTORS)
def test_the_readable_form_of_a_vector_has_its_bytes(name: str) -> None:
    empty = type(parsed(VECTORS[name]))()

    message = json_format.ParseDict(VECTORS[name]["value"], empty)

    assert message.SerializeToString(deterministic=True).hex() == VECTORS[name]["binary"]


def test_every_message_of_the_service_occurs_in_a_vector() -> None:
    services = set(chat_service_pb2.DESCRIPTOR.message_types_by_name)

    assert services <= {kind for vector in VECTORS.values() for kind in kinds_in(parsed(vector))}


@pytest.mark.parametrize("name", VECTORS)
def test_fields_it_does_not_know_are_kept(name: str) -> None:
    # Field 900, a text, as a later minor version might add it.
    newer = bytes.fromhex(VECTORS[name]["binary"]) + b"\xa2\x38\x03new"

    kept = type(parsed(VECTORS[name])).FromString(newer)

    assert kept.SerializeToString(deterministic=True) == newer


def test_an_event_type_that_is_newer_is_given_by_its_name() -> None:
    newer = chunk_pb2.Chunk.FromString(
        chunk_pb2.Chunk(
            attempt=1, event=chunk_pb2.ChatEvent(type_name="hologram")
        ).SerializeToString()
        # Of the event, the field `type` again, with a number of tomorrow.
        + b"\x1a\x03\x08\xe7\x07"
    )

    assert read_chunk(newer).event.type == "hologram"
    newer.event.type_name = ""
    assert read_chunk(newer).event.type == "custom"


def test_a_state_that_is_newer_is_no_error() -> None:
    newer = chat_service_pb2.CancelResponse.FromString(b"\x08\xe7\x07")

    assert read_state(newer) is TurnState.RUNNING
