"""Schemas made from descriptors: both forms of JSON, and what they refer to."""

import pytest

from turnline.protocol.json_schema import REF, Form, SchemaMaker
from turnline.v1 import chat_pb2, envelope_pb2, failure_pb2

OWN = SchemaMaker(form=Form.OWN)
PROTO = SchemaMaker(form=Form.PROTO, prefix="proto.")


@pytest.mark.parametrize(
    ("maker", "field", "schema"),
    [
        (OWN, "request_id", {"type": "string"}),
        (OWN, "attempt", {"type": "integer", "minimum": 0}),
        (OWN, "fence", {"type": "integer", "minimum": 0}),
        (OWN, "deadline", {"type": "number", "minimum": 0}),
        (OWN, "delivery_mode", {"enum": ["keep", "keep_stream", "push", "push_stream"]}),
        (OWN, "chunks", {"type": "array", "items": {"$ref": f"{REF}Chunk"}}),
        (PROTO, "fence", {"type": "string", "pattern": r"^\d+$"}),
        (PROTO, "deadline", {"type": "string", "format": "date-time"}),
        (PROTO, "reply", {"$ref": f"{REF}proto.ChatReply"}),
        (PROTO, "attributes", {"type": "object", "additionalProperties": {"type": "string"}}),
    ],
)
def test_a_field_is_what_it_is_in_its_form(
    maker: SchemaMaker, field: str, schema: dict[str, object]
) -> None:
    assert maker.properties(envelope_pb2.Envelope, only=(field,)) == {field: schema}


def test_an_enum_of_protojson_takes_numbers_of_newer_versions() -> None:
    schema = PROTO.properties(failure_pb2.Failure, only=("retry",))["retry"]

    assert {"type": "integer"} in schema["anyOf"]


def test_fields_are_left_out_and_renamed_as_asked() -> None:
    found = OWN.properties(chat_pb2.Attachment, omit=("name",), names={"data": "file_data"})

    assert list(found) == ["file_data", "mime_type"]


def test_comments_become_descriptions() -> None:
    comments = {"turnline.v1.Failure": "Why.", "turnline.v1.Failure.code": "What."}
    maker = SchemaMaker(form=Form.OWN, comments=comments)

    assert maker.properties(failure_pb2.Failure)["code"]["description"] == "What."
    assert "description" not in maker.properties(failure_pb2.Failure)["message"]
    assert maker.described(failure_pb2.Failure, {}) == {"description": "Why."}


def test_a_message_comes_with_every_one_it_is_made_of() -> None:
    found = PROTO.reachable(envelope_pb2.Envelope)

    assert {"proto.Envelope", "proto.ChatEvent", "proto.Decision", "proto.Failure"} <= found.keys()
    assert not any("Struct" in name or "Attributes" in name for name in found)
