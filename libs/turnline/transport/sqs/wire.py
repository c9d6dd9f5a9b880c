"""Messages of SQS as envelopes and back; see `turnline.protocol.json_body`.  Pure.

The body is the guide's JSON, metadata stands in message attributes.  SQS carries text only, so a
producer that has Protobuf writes it as base64 and says so in the attribute `content-type`.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from turnline.errors import UndecodableError
from turnline.protocol import Envelope, SessionKey, digest
from turnline.protocol.codec import decode, encode
from turnline.protocol.json_body import decode_json_body, encode_json_body

CONTENT_TYPE = "content-type"
PROTOBUF = "application/x-protobuf"

# What AWS takes as a group: "alphanumeric characters and punctuation", 128 of them.
_GROUP = re.compile(r"[!-~]{1,128}")
# A token of a session never holds it: there `~` is followed by 0 or 1.
_HASHED = "~2"
_DATA_TYPE = "String"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A message to be sent.

    Attributes:
        dedup_id: copies of one id, sent within five minutes, are one.
    """

    body: str
    attributes: Mapping[str, str]
    group: str
    dedup_id: str

    @property
    def size(self) -> int:
        """Bytes as SQS counts them: the body, and of each attribute its name, type and value."""
        parts = [self.body, *self.attributes, *self.attributes.values()]
        return sum(len(part.encode()) for part in parts) + len(_DATA_TYPE) * len(self.attributes)


def outgoing(envelope: Envelope, *, largest: int, dedup_id: str = "") -> Outgoing:
    """Make the message of an envelope; `dedup_id` is its own unless another one is given.

    Escapes make JSON larger than what it says, up to six times.  What is over `largest` bytes as
    JSON goes as Protobuf, so that an envelope that was found small enough always fits.

    Raises:
        InvalidRequestError, AgentFailedError: it holds what is not JSON, or JSON out of bounds.
    """
    body, attributes = encode_json_body(envelope)
    message = Outgoing(
        body=body.decode(),
        attributes=attributes,
        group=group_of(envelope.session_key),
        dedup_id=dedup_id or envelope.dedup_id,
    )
    if message.size <= largest:
        return message
    packed = base64.b64encode(encode(envelope)).decode()
    return replace(message, body=packed, attributes={CONTENT_TYPE: PROTOBUF})


def group_of(session: SessionKey) -> str:
    """Give the group of a session: its id as it is where AWS takes that, otherwise a hash.

    Injective (up to SHA-256): no two sessions share a group, also of two users.
    """
    token = session.token
    return token if _GROUP.fullmatch(token) else _HASHED + digest("group", token)


def envelope_of(body: str, attributes: Mapping[str, str]) -> Envelope:
    """Read an envelope.

    Raises:
        UndecodableError: it is none; says why, without content.
    """
    if _is_protobuf(attributes):
        return decode(_unpacked(body))
    return decode_json_body(body.encode(), _without_content_type(attributes))


def raw_of(body: str, attributes: Mapping[str, str]) -> bytes:
    """Give the bytes that a body stands for."""
    if _is_protobuf(attributes):
        try:
            return _unpacked(body)
        except UndecodableError:
            return body.encode()
    return body.encode()


def _is_protobuf(attributes: Mapping[str, str]) -> bool:
    return "protobuf" in attributes.get(CONTENT_TYPE, "").lower()


def _unpacked(body: str) -> bytes:
    try:
        return base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UndecodableError("Protobuf that is not base64") from error


def _without_content_type(attributes: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in attributes.items() if name != CONTENT_TYPE}
