"""A VPC link for tests and examples: what a WebSocket API posts to containers.

The integrations that deploy/terraform/containerized makes, over real HTTP: three paths, the
socket's id and the route in headers, and at `$connect` the token of the query.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Self

import httpx

_PATHS = MappingProxyType({"CONNECT": "/ws/connect", "DISCONNECT": "/ws/disconnect"})
_MESSAGE_PATH = "/ws/message"
_SECONDS = 29.0


class VpcLink:
    """The way to one container; use as an async context manager.

    Args:
        url: of the container, as its load balancer knows it.
    """

    def __init__(self, url: str) -> None:
        self._client = httpx.AsyncClient(base_url=url, timeout=_SECONDS)

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *exc_info: Any) -> None:  # noqa: ANN401 - as it is given
        await self._client.__aexit__(*exc_info)

    async def invoke(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Post one event of a WebSocket API; give the answer in the shape of a function's."""
        context = event["requestContext"]
        kind = context["eventType"]
        query = event.get("queryStringParameters") or {}
        answer = await self._client.post(
            _PATHS.get(kind, _MESSAGE_PATH),
            params={"token": query["token"]} if kind == "CONNECT" and "token" in query else None,
            headers={
                "content-type": "application/json",
                "x-ak-connection-id": context["connectionId"],
                "x-ak-route": context["routeKey"],
            },
            content=(event.get("body") or "").encode(),
        )
        return {
            "statusCode": answer.status_code,
            "headers": dict(answer.headers),
            "body": answer.text,
        }
