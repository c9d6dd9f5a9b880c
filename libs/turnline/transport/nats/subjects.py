"""Subjects: which one a session's messages travel on, and those of our own.  Pure.

A session has one subject per queue, `<prefix>.<partition>.<token>`.  The token is injective, so
that no two sessions share a subject and the order of a subject is the order of a session.
"""

import hashlib
import zlib
from urllib.parse import quote

from turnline.protocol import SessionKey

# Longer ones are hashed: a subject is part of every control line, which the server bounds.
MAX_TOKEN_LENGTH = 200
_PLAIN = "~-_:@+,;()"
_MARK = "="  # begins no plain token, so a hashed one is never taken for another


def subject_of(prefix: str, key: SessionKey, partitions: int) -> str:
    """Give the subject of a session."""
    partition = zlib.crc32(key.session_id.encode()) % partitions
    return f"{prefix}.{partition}.{subject_token(key.token)}"


def subject_token(text: str) -> str:
    """Write any text as one token of a subject: printable ASCII, no wildcard, 1 to 200 long."""
    token = quote(text, safe=_PLAIN).replace(".", "%2E")
    if len(token) <= MAX_TOKEN_LENGTH:
        return token or _MARK
    return _MARK + hashlib.sha256(text.encode()).hexdigest()


def dead_stream(stream: str) -> str:
    """Name the stream that holds a queue's dead letters."""
    return f"{stream}_DEAD"


def unspent_stream(stream: str) -> str:
    """Name the stream that holds how many deliveries of a message spent no attempt."""
    return f"{stream}_UNSPENT"


def settled_subject(stream: str, subject: str) -> str:
    """Give the subject on which it is said that the head of `subject` is gone.

    Not a subject of any stream: whoever does not listen now finds out by looking.
    """
    return f"turnline.settled.{stream}.{subject}"
