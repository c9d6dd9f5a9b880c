"""Identifiers: what is a valid one, and how ids are scoped so that callers cannot collide.

A scope is the authenticated user, or empty where no AuthValidator is set.  Two users may use the
same session or request id and never meet (ADR 0002); the tokens below are injective, so
no two keys share a queue group, subject or store key.
"""

import hashlib
import uuid
from typing import NamedTuple

from turnline.errors import InvalidRequestError

MAX_ID_BYTES = 256


class SessionKey(NamedTuple):
    """Names a session: `scope` is the authenticated user, empty when there is none."""

    scope: str
    session_id: str

    @property
    def token(self) -> str:
        """Injective text form, used as queue group and store key.

        An unscoped session's token is its session id with `~` escaped, so that the guide's
        "MessageGroupId = session_id" holds for it.
        """
        session = self.session_id.replace("~", "~0")
        return f"~1{self.scope.replace('~', '~0')}~1{session}" if self.scope else session


class ReplyKey(NamedTuple):
    """Names a stored reply: a request id within a scope."""

    scope: str
    request_id: str

    @property
    def token(self) -> str:
        """Injective text form, used as store key."""
        request = self.request_id.replace("~", "~0")
        return f"~1{self.scope.replace('~', '~0')}~1{request}" if self.scope else request


def new_request_id() -> str:
    """Mint a request id nobody else has (random UUID)."""
    return str(uuid.uuid4())


def check_id(value: object, *, field: str) -> str:
    """Return `value` if it can be an id: 1 to 256 bytes of UTF-8 without control characters.

    Raises:
        InvalidRequestError: naming `field` and what is wrong.
    """
    if not isinstance(value, str):
        raise InvalidRequestError(f"{field} must be a string", field=field)
    if not value.strip():
        raise InvalidRequestError(f"{field} must not be empty", field=field)
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidRequestError(f"{field} is not valid Unicode text", field=field) from None
    if size > MAX_ID_BYTES:
        raise InvalidRequestError(f"{field} is longer than {MAX_ID_BYTES} bytes", field=field)
    if not value.isprintable():
        raise InvalidRequestError(f"{field} must not hold control characters", field=field)
    return value


def digest(*parts: str) -> str:
    """Hash a list of texts injectively (lengths included) to 64 hex digits."""
    framed = bytearray()
    for part in parts:
        raw = part.encode()
        framed += len(raw).to_bytes(8, "big")
        framed += raw
    return hashlib.sha256(framed).hexdigest()
