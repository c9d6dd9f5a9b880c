"""JSON Schemas of the protocol's messages, made from their Protobuf descriptors.

The descriptors that the product runs with hold no comments; whoever has them (the page maker does)
gives them, and they become descriptions.  Two forms of JSON are known: the product's own, in which
clients and SQS see messages, and ProtoJSON, in which people and other languages see the bytes.
Pure.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

JsonSchema = dict[str, Any]

# Descriptors are of either of two libraries' types, which have no type in common.
Descriptor = Any

REF = "#/components/schemas/"

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_WIDE = {FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64}
_UNSIGNED = {FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64}
_INTEGERS = _WIDE | _UNSIGNED | {FieldDescriptor.CPPTYPE_INT32}


class Form(StrEnum):
    """How messages look as JSON.

    OWN: the product's: enum values as lower-case words, times as seconds.
    PROTO: ProtoJSON with the fields' names as in the .proto files.
    """

    OWN = "own"
    PROTO = "proto"


_WELL_KNOWN: Mapping[Form, Mapping[str, JsonSchema]] = {
    Form.OWN: {
        "google.protobuf.Struct": {"type": "object"},
        "google.protobuf.Value": {},
        "google.protobuf.Timestamp": {"type": "number", "minimum": 0},
        "google.protobuf.Duration": {"type": "number", "minimum": 0},
    },
    Form.PROTO: {
        "google.protobuf.Struct": {"type": "object"},
        "google.protobuf.Value": {},
        "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
        "google.protobuf.Duration": {"type": "string", "pattern": r"^\d+(\.\d+)?s$"},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaMaker:
    """Makes schemas of one form.

    Attributes:
        form: how messages look.
        comments: full name of a message, field or enum value -> what it means; may be empty.
        prefix: what the names of components begin with, before the message's own.
    """

    form: Form
    comments: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""

    def reachable(self, message: type[Message]) -> dict[str, JsonSchema]:
        """Give a message and every one it is made of, by component name; no field is required."""
        found: dict[str, JsonSchema] = {}
        waiting: list[Descriptor] = [message.DESCRIPTOR]
        while waiting:
            whole = waiting.pop()
            name = self._component(whole)
            if name in found:
                continue
            properties = {part.name: self._field(part) for part in whole.fields}
            schema: JsonSchema = {"type": "object", "properties": properties}
            found[name] = self._described(whole.full_name, schema)
            waiting += [part.message_type for part in whole.fields if self._is_own_message(part)]
        return dict(sorted(found.items()))

    def properties(
        self,
        message: type[Message],
        *,
        only: Collection[str] = (),
        omit: Collection[str] = (),
        names: Mapping[str, str] = _NOTHING,
    ) -> dict[str, JsonSchema]:
        """Give the schemas of a message's fields by name.

        Args:
            only: the fields wanted; empty means all.
            omit: fields left out.
            names: field -> its name here, where that is another.
        """
        return {
            names.get(part.name, part.name): self._field(part)
            for part in message.DESCRIPTOR.fields
            if part.name not in omit and (not only or part.name in only)
        }

    def described(self, message: type[Message], schema: JsonSchema) -> JsonSchema:
        """Add what is known of a message to a schema."""
        return self._described(message.DESCRIPTOR.full_name, schema)

    def _described(self, full_name: str, schema: JsonSchema) -> JsonSchema:
        text = self.comments.get(full_name)
        return {**schema, "description": text} if text else schema

    def _field(self, part: Descriptor) -> JsonSchema:
        return self._described(part.full_name, self._shape(part))

    def _shape(self, part: Descriptor) -> JsonSchema:
        if part.message_type is not None and part.message_type.GetOptions().map_entry:
            value = part.message_type.fields_by_name["value"]
            return {"type": "object", "additionalProperties": self._one(value)}
        one = self._one(part)
        return {"type": "array", "items": one} if part.is_repeated else one

    def _one(self, part: Descriptor) -> JsonSchema:
        if part.message_type is not None:
            known = _WELL_KNOWN[self.form].get(part.message_type.full_name)
            return dict(known) if known is not None else self._ref(part.message_type)
        if part.enum_type is not None:
            return self._choice(part.enum_type)
        if part.cpp_type in _INTEGERS:
            return self._integer(part.cpp_type)
        if part.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
            return {"type": "boolean"}
        return {"type": "string"}

    def _integer(self, kind: int) -> JsonSchema:
        if kind in _WIDE and self.form is Form.PROTO:
            return {"type": "string", "pattern": r"^\d+$"}
        return {"type": "integer", "minimum": 0} if kind in _UNSIGNED else {"type": "integer"}

    def _choice(self, enum: Descriptor) -> JsonSchema:
        if self.form is Form.PROTO:
            # A value this version does not know is carried as its number.
            return {"anyOf": [{"enum": [v.name for v in enum.values]}, {"type": "integer"}]}
        prefix = enum.values_by_number[0].name.removesuffix("UNSPECIFIED")
        # What is unspecified is left out.
        return {"enum": [v.name.removeprefix(prefix).lower() for v in enum.values if v.number]}

    def _is_own_message(self, part: Descriptor) -> bool:
        message = part.message_type
        return bool(
            message is not None
            and not message.GetOptions().map_entry
            and message.full_name not in _WELL_KNOWN[self.form]
        )

    def _component(self, message: Descriptor) -> str:
        return f"{self.prefix}{message.name}"

    def _ref(self, message: Descriptor) -> JsonSchema:
        return ref(self._component(message))


def ref(name: str) -> JsonSchema:
    """Refer to a component."""
    return {"$ref": REF + name}
