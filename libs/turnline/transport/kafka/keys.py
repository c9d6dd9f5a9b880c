"""The key of a record: names a session, and so its order and its partition.

A session without a scope has its own id as key, as the guide says.  A scoped one begins with a
control character, which no id may hold, so the two never meet; the length keeps scopes apart.
Partitions are chosen by the Java client's hash (murmur2), so producers in any language agree.
"""

from turnline.protocol import SessionKey

_SCOPED = "\x1f"


def record_key(session: SessionKey) -> bytes:
    """Give the key of a session's records; never empty."""
    return group_of(session).encode()


def group_of(session: SessionKey) -> str:
    """Give the key as text, by which the books count a session's share."""
    if not session.scope:
        return session.session_id
    return f"{_SCOPED}{len(session.scope)}{_SCOPED}{session.scope}{session.session_id}"


def group_text(key: bytes | None) -> str:
    """Read a record's key as `group_of` gave it; anything else gives some text, too."""
    return (key or b"").decode(errors="replace")
