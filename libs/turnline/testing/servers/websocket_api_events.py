"""The events of a WebSocket API of API Gateway, made of what is known of a socket.  Pure.

https://docs.aws.amazon.com/apigateway/latest/developerguide/apigateway-websocket-api-mapping-template-reference.html
"""

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from starlette.websockets import WebSocket

from turnline.testing.servers.api_gateway import STAGE

_ARN = "arn:aws:execute-api:eu-west-1:000000000000:local"
_ROUTES = {"CONNECT": "$connect", "DISCONNECT": "$disconnect"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is known of a socket from its handshake.

    Attributes:
        name: its id.
        connected_at: seconds since 1970.
        authorizer: what an authorizer found; None: none was asked.
    """

    name: str
    host: str
    source_ip: str
    headers: Mapping[str, str]
    query: Mapping[str, str]
    connected_at: float
    authorizer: Mapping[str, Any] | None = None

    def with_authorizer(self, found: Mapping[str, Any]) -> "Told":
        """Give the same with an authorizer's finding, which goes with every event."""
        return replace(self, authorizer=found)

    def described(self) -> dict[str, Any]:
        """Give it as `GET @connections` does."""
        return {
            "connectedAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.connected_at)),
            "identity": {
                "sourceIp": self.source_ip,
                "userAgent": self.headers.get("user-agent", ""),
            },
        }


def handshake_in(websocket: WebSocket, name: str) -> Told:
    """Read a handshake; of what is there several times the last one counts, as at API Gateway."""
    headers = dict(websocket.headers.items())
    return Told(
        name=name,
        host=headers.get("host", ""),
        source_ip=websocket.client.host if websocket.client else "",
        headers=headers,
        query=dict(websocket.query_params),
        connected_at=time.time(),
    )


def event_of(
    told: Told, kind: str, *, route: str = "", body: str | None = None, close_code: int = 0
) -> dict[str, Any]:
    """Make an event.

    Args:
        kind: CONNECT, MESSAGE or DISCONNECT.
        route: of a frame.
        body: a frame's text.
        close_code: of a socket that ended.
    """
    now = time.time()
    context: dict[str, Any] = {
        "routeKey": _ROUTES.get(kind, route),
        "eventType": kind,
        "extendedRequestId": uuid.uuid4().hex,
        "requestTime": time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now)),
        "messageDirection": "IN",
        "stage": STAGE,
        "connectedAt": int(told.connected_at * 1000),
        "requestTimeEpoch": int(now * 1000),
        "identity": {"sourceIp": told.source_ip},
        "requestId": uuid.uuid4().hex,
        "domainName": told.host,
        "connectionId": told.name,
        "apiId": "local",
    }
    if told.authorizer is not None:
        context["authorizer"] = dict(told.authorizer)
    event: dict[str, Any] = {"requestContext": context, "isBase64Encoded": False}
    match kind:
        case "MESSAGE":
            context["messageId"] = uuid.uuid4().hex
            event["body"] = body
        case "DISCONNECT":
            context["disconnectStatusCode"] = close_code
            context["disconnectReason"] = ""
            event["headers"] = {"Host": told.host}
            event["multiValueHeaders"] = {"Host": [told.host]}
        case _:
            event.update(_handshake(told))
    return event


def authorizer_event(told: Told) -> dict[str, Any]:
    """Make the event of a REQUEST authorizer at `$connect`."""
    event = event_of(told, "CONNECT")
    return {**event, "type": "REQUEST", "methodArn": f"{_ARN}/{STAGE}/$connect"}


def _handshake(told: Told) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "headers": dict(told.headers),
        "multiValueHeaders": {name: [value] for name, value in told.headers.items()},
    }
    if told.query:
        parts["queryStringParameters"] = dict(told.query)
        parts["multiValueQueryStringParameters"] = {n: [v] for n, v in told.query.items()}
    return parts
