"""Finds the bearer token in a request.  Knows ASGI's scope and no framework.

Precedence on a socket: `Authorization` header, subprotocol, `?token=`.  A URL comes last because
proxies log it; it stays because the guide's clients send the token there.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs

SUBPROTOCOL = "turnline"
BEARER_SUBPROTOCOL = "turnline.bearer"

_PREFIX = f"{BEARER_SUBPROTOCOL}."


def bearer_token(authorization: str | None) -> str | None:
    """Return the token of an `Authorization: Bearer <token>` header's value; None if it has none.

    The scheme's case does not matter; other schemes hold no token.
    """
    scheme, _, token = (authorization or "").strip().partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def websocket_token(scope: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return a socket's token and the subprotocol to accept it with; None where there is none.

    A browser sets no header on a socket, but may offer the token as a subprotocol, in either form:
    `new WebSocket(url, ["turnline.bearer", token])` or `[..., "turnline.bearer." + token]`.  It
    closes a socket that is accepted without one of the subprotocols offered, so one of ours is
    always chosen, one that holds no token if there is such a one.

    Args:
        scope: the ASGI scope of the socket.
    """
    offered: Sequence[str] = scope.get("subprotocols") or ()
    token = (
        bearer_token(_header(scope.get("headers") or (), b"authorization"))
        or _offered_token(offered)
        or _query_token(scope.get("query_string") or b"")
    )
    return token, _chosen(offered)


def _header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str | None:
    return next((value.decode("latin-1") for key, value in headers if key.lower() == name), None)


def _offered_token(offered: Sequence[str]) -> str | None:
    for position, name in enumerate(offered):
        if name.startswith(_PREFIX):
            return name[len(_PREFIX) :] or None
        if name == BEARER_SUBPROTOCOL and position + 1 < len(offered):
            return offered[position + 1]
    return None


def _query_token(query: bytes) -> str | None:
    values = parse_qs(query.decode("latin-1")).get("token")
    return values[0].strip() or None if values else None


def _chosen(offered: Sequence[str]) -> str | None:
    for name in (SUBPROTOCOL, BEARER_SUBPROTOCOL):
        if name in offered:
            return name
    return next((name for name in offered if name.startswith(_PREFIX)), None)
