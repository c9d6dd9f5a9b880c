"""Way to another pod: its authenticated `/internal/push` route (guide).

A module of its own, so that a single process need not load an HTTP client.
"""

from collections.abc import Sequence

import httpx
import orjson

from turnline.errors import TransportUnavailableError
from turnline.push.port import ConnectionPush, Frame
from turnline.push.routes import PUSH_PATH, PUSH_TOKEN_HEADER

_POD_SECONDS = 5.0
# Pods are near: one that takes longer is gone.
_CONNECT_SECONDS = 1.0


class HttpPush:
    """Pushes to one pod."""

    def __init__(self, *, client: httpx.AsyncClient, endpoint: str, token: str) -> None:
        """Wire it; `endpoint` is the pod's base URL, `token` the shared push secret."""
        self._client = client
        self._url = endpoint.rstrip("/") + PUSH_PATH
        self._headers = {PUSH_TOKEN_HEADER: token, "content-type": "application/json"}

    async def push(self, connection_id: str, frames: Sequence[Frame]) -> bool:
        """See `ConnectionPush.push`; all frames travel in one request."""
        body = orjson.dumps({"connection_id": connection_id, "messages": list(frames)})
        try:
            answer = await self._client.post(self._url, content=body, headers=self._headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise TransportUnavailableError("the gateway pod did not answer") from error
        if answer.status_code == httpx.codes.NOT_FOUND:
            return False
        if answer.is_error:
            raise TransportUnavailableError(f"the gateway pod answered {answer.status_code}")
        return True


class HttpPods:
    """Ways to all pods over one client; a way costs nothing to make, so none is kept."""

    def __init__(self, client: httpx.AsyncClient, token: str) -> None:
        """Wire it; `token` is the shared push secret."""
        self._client = client
        self._token = token

    def __call__(self, endpoint: str) -> ConnectionPush:
        """Give the way to the pod at a base URL."""
        return HttpPush(client=self._client, endpoint=endpoint, token=self._token)


def pod_client() -> httpx.AsyncClient:
    """Make the client that pushes to pods share; enter it to use it.

    Pods are reached directly, whatever proxy the environment names.
    """
    return httpx.AsyncClient(
        timeout=httpx.Timeout(_POD_SECONDS, connect=_CONNECT_SECONDS), trust_env=False
    )
