"""API Gateway's WebSocket events, and the tokens that clients bring.  Pure.

https://docs.aws.amazon.com/apigateway/latest/developerguide/apigateway-websocket-api-mapping-template-reference.html
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from turnline.auth import websocket_token
from turnline.auth.port import USER_ID_CLAIM
from turnline.aws.environment import Event

CONNECT = "CONNECT"
DISCONNECT = "DISCONNECT"
PROTOCOL_HEADER = "Sec-WebSocket-Protocol"


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketEvent:
    """One event.

    Attributes:
        kind: CONNECT, MESSAGE or DISCONNECT.
        endpoint: where frames for the socket are posted.
        user_id: whom the API's authorizer found; empty: there is none, or it named nobody.
        token: what the client brought at CONNECT.
        subprotocol: the one to accept the socket with; None: none was offered.
        text: of the frame; empty in other events.
    """

    kind: str
    connection_id: str
    endpoint: str
    user_id: str
    token: str | None
    subprotocol: str | None
    text: str


def read_socket_event(event: Event) -> SocketEvent:
    """Read an event.

    Raises:
        ValueError: it is no WebSocket event of API Gateway.
    """
    context = event.get("requestContext")
    if not isinstance(context, dict) or "connectionId" not in context:
        raise ValueError("no WebSocket event of API Gateway: it names no connection")
    token, subprotocol = token_in(event)
    return SocketEvent(
        kind=context.get("eventType", "MESSAGE"),
        connection_id=context["connectionId"],
        endpoint=f"https://{context.get('domainName', '')}/{context.get('stage', '')}",
        user_id=_user_in(context),
        token=token,
        subprotocol=subprotocol,
        text=event.get("body") or "",
    )


def token_in(event: Event) -> tuple[str | None, str | None]:
    """Find the token in a request's headers, subprotocols or query, and the subprotocol to take."""
    headers = {name.lower(): value for name, value in (event.get("headers") or {}).items()}
    offered = headers.get(PROTOCOL_HEADER.lower(), "")
    return websocket_token(
        {
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "subprotocols": [name.strip() for name in offered.split(",") if name.strip()],
            "query_string": urlencode(event.get("queryStringParameters") or {}).encode(),
        }
    )


def _user_in(context: Mapping[str, Any]) -> str:
    authorizer = context.get("authorizer")
    if not isinstance(authorizer, dict):
        return ""
    return str(authorizer.get(USER_ID_CLAIM) or authorizer.get("principalId") or "")
