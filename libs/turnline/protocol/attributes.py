"""An envelope's metadata as message attributes, for transports whose body is the guide's JSON.

SQS takes at most 10 attributes, so the ones the guide names travel under their own names and the
rest together, as JSON, in one called `turnline`.  Reading is the other way round: what `turnline`
says holds, and a plain attribute of the same name stands in for what it does not say.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from turnline.errors import UndecodableError
from turnline.protocol.envelope import DeliveryMode, Envelope, TraceContext
from turnline.protocol.messages import END_OF_TIME, check_time

MAX_ATTRIBUTES = 10
PACKED = "turnline"

_OWN_NAMES = ("request_id", "user_id", "status_code", "traceparent")
_NAMES = frozenset(
    {
        *_OWN_NAMES,
        PACKED,
        "kind",
        "streamed",
        "scope",
        "delivery_mode",
        "chunk_count",
        "attempt",
        "fence",
        "deadline",
        "enqueued_at",
        "tracestate",
        "attributes",
    }
)
# What SQS takes as a name; see "Amazon SQS message attributes" in its developer guide.
_ATTRIBUTE_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_FOREIGN_PREFIX = f"{PACKED}."
_MODES = {mode.value: mode for mode in DeliveryMode}
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """Attributes as read.

    Attributes:
        packed: what `turnline` holds; None when the message has no such attribute, which means
            that it was not made from an envelope.
        plain: all other attributes.
    """

    packed: Mapping[str, Any] | None
    plain: Mapping[str, str]

    @property
    def bare(self) -> bool:
        """Whether the message was not made from an envelope."""
        return self.packed is None

    def text(self, name: str) -> str:
        """Give a text; empty when it is missing."""
        value = self._find(name)
        if not isinstance(value, str):
            raise UndecodableError(f"metadata {name} is not a string")
        return value

    def whole(self, name: str) -> int:
        """Give a number of 0 or more; 0 when it is missing."""
        value = self._find(name)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
            value = int(value)
        if value == "":
            return 0
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
            raise UndecodableError(f"metadata {name} is not a whole number")
        return value

    def moment(self, name: str) -> float:
        """Give seconds since the epoch; 0 when it is missing."""
        value = self._find(name)
        if value == "":
            return 0.0
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not 0 <= value < END_OF_TIME
        ):
            raise UndecodableError(f"metadata {name} is not a time")
        return float(value)

    def delivery_mode(self) -> DeliveryMode:
        """Give the delivery mode; one of a newer version is read as unspecified."""
        return _MODES.get(self.text("delivery_mode"), DeliveryMode.UNSPECIFIED)

    def trace(self) -> TraceContext:
        """Give the trace context."""
        return TraceContext(
            traceparent=self.text("traceparent"), tracestate=self.text("tracestate")
        )

    def passed_through(self) -> dict[str, str]:
        """Give the envelope's own attributes, and a newer version's metadata among them."""
        found = {name: text for name, text in self.plain.items() if name not in _NAMES}
        packed = self.packed or {}
        for name, value in packed.items():
            if name not in _NAMES:
                found[_FOREIGN_PREFIX + name] = orjson.dumps(value).decode()
        inner = packed.get("attributes", {})
        if not isinstance(inner, dict) or not all(isinstance(v, str) for v in inner.values()):
            raise UndecodableError("metadata attributes are not texts")
        return found | inner

    def _find(self, name: str) -> object:
        if self.packed is not None and name in self.packed:
            return self.packed[name]
        return self.plain.get(name, "")


def read_attributes(attributes: Mapping[str, str]) -> Metadata:
    """Read message attributes.

    Raises:
        UndecodableError: `turnline` is there and no JSON object.
    """
    raw = attributes.get(PACKED)
    if raw is None:
        return Metadata(packed=None, plain=attributes)
    try:
        packed = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise UndecodableError("metadata is not JSON") from error
    if not isinstance(packed, dict):
        raise UndecodableError("metadata is not a JSON object")
    return Metadata(packed=packed, plain=attributes)


def write_attributes(envelope: Envelope, *, kind: str) -> dict[str, str]:
    """Give at most 10 attributes that hold all of an envelope's metadata.

    Args:
        kind: what the body is, for the reader of the body.

    Raises:
        ValueError: a time is out of range.
    """
    packed = _packed(envelope, kind)
    own = {
        "request_id": envelope.request_id,
        "user_id": envelope.user_id,
        "status_code": str(envelope.status_code or ""),
        "traceparent": envelope.trace.traceparent,
    }
    found: dict[str, str] = {}
    for name, value in own.items():
        if _fits(name, value):
            found[name] = value
        elif value:
            packed[name] = value
    inner: dict[str, str] = {}
    for name, value in sorted(envelope.attributes.items()):
        if name.startswith(_FOREIGN_PREFIX):
            packed[name.removeprefix(_FOREIGN_PREFIX)] = _unpacked(value)
        elif len(found) + 1 < MAX_ATTRIBUTES and name not in _NAMES and _fits(name, value):
            found[name] = value
        else:
            inner[name] = value
    if inner:
        packed["attributes"] = inner
    found[PACKED] = dump_json(packed).decode()
    return found


def dump_json(value: object) -> bytes:
    """Give compact JSON text that every broker takes.

    SQS refuses the two non-characters U+FFFE and U+FFFF, even inside JSON; they are escaped.

    Raises:
        TypeError: the value is not JSON.
    """
    raw = orjson.dumps(value)
    if b"\xef\xbf\xbe" in raw or b"\xef\xbf\xbf" in raw:
        raw = raw.replace(b"\xef\xbf\xbe", b"\\ufffe").replace(b"\xef\xbf\xbf", b"\\uffff")
    return raw


def _packed(envelope: Envelope, kind: str) -> dict[str, Any]:
    values = {
        "scope": envelope.scope,
        "delivery_mode": envelope.delivery_mode.value,
        "streamed": len(envelope.chunks),
        "chunk_count": envelope.chunk_count,
        "attempt": envelope.attempt,
        "fence": envelope.fence,
        "deadline": check_time(envelope.deadline),
        "enqueued_at": check_time(envelope.enqueued_at),
        "tracestate": envelope.trace.tracestate,
    }
    return {"kind": kind} | {name: value for name, value in values.items() if value}


def _fits(name: str, value: str) -> bool:
    return (
        value != ""
        and value.isprintable()
        and len(name) <= 256
        and _ATTRIBUTE_NAME.fullmatch(name) is not None
        and not name.lower().startswith(("aws.", "amazon."))
    )


def _unpacked(text: str) -> object:
    try:
        value: object = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return value
