"""Names on the server.

All names of one turn, session or user share a cluster hash tag, `{...}`, made of the key's token,
so that one script may touch them all.  `}` is written `~2` in it: the tag would end there, and a
token never holds `~2`.
"""

from typing import NamedTuple

from turnline.protocol import ReplyKey, SessionKey


class ReplyNames(NamedTuple):
    """Of one turn's answer.

    Attributes:
        head: hash of what is known of the turn, its end included.
        chunks: stream of the chunks of its newest attempt.
        ended / changed: channels told of an end, and of an end or a chunk.
    """

    head: bytes
    chunks: bytes
    ended: bytes
    changed: bytes


class SessionNames(NamedTuple):
    """Of one session.

    Attributes:
        ledger: hash of its claim, fence and state.
        turns: list of its history, oldest first.
        done: hash of how turns ended, by request id.
        order: list of the request ids in `done`, oldest first.
        tries: hash of how often turns that have not ended were claimed, by request id.
        recent: sorted set of the request ids in `tries`, by the fence of the last claim.
        cancelled: channel told of cancellations.
    """

    ledger: bytes
    turns: bytes
    done: bytes
    order: bytes
    tries: bytes
    recent: bytes
    cancelled: bytes


class UserNames(NamedTuple):
    """Of one user's connections.

    Attributes:
        sockets: hash of the sockets, by connection id.
        held: list of the held frames, oldest first.
    """

    sockets: bytes
    held: bytes


def reply_names(prefix: str, key: ReplyKey) -> ReplyNames:
    """Name what is kept of a turn's answer."""
    base = _tagged(prefix, key.token)
    return ReplyNames(base + b":reply", base + b":chunks", base + b":ended", base + b":changed")


def session_names(prefix: str, key: SessionKey) -> SessionNames:
    """Name what is kept of a session."""
    base = _tagged(prefix, key.token)
    return SessionNames(
        base + b":ledger",
        base + b":turns",
        base + b":done",
        base + b":order",
        base + b":tries",
        base + b":recent",
        base + b":cancelled",
    )


def user_names(prefix: str, user_id: str) -> UserNames:
    """Name what is kept of a user; the empty user id is one too, and an empty tag is none."""
    base = _tagged(prefix, "user:" + user_id.replace("~", "~0"))
    return UserNames(base + b":sockets", base + b":held")


def _tagged(prefix: str, token: str) -> bytes:
    return f"{prefix}{{{token.replace('}', '~2')}}}".encode()
