"""Way to another pod: its authenticated `/internal/push` route (guide).

A module of its own, so that a single process need not load an HTTP client.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus

import aiohttp
import orjson

from turnline.errors import TransportUnavailableError
from turnline.push.port import ConnectionPush, Frame
from turnline.push.routes import PUSH_PATH, PUSH_TOKEN_HEADER

_POD_SECONDS = 5.0
# Pods are near: one that takes longer is gone.
_CONNECT_SECONDS = 1.0
# A pod closes an idle connection after five seconds; none is used that it may be closing.
_IDLE_SECONDS = 3.0
_MAX_CONNECTIONS = 100


class HttpPush:
    """Pushes to one pod."""

    def __init__(self, *, client: aiohttp.ClientSession, endpoint: str, token: str) -> None:
        """Wire it; `endpoint` is the pod's base URL, `token` the shared push secret."""
        self._client = client
        self._url = endpoint.rstrip("/") + PUSH_PATH
        self._headers = {PUSH_TOKEN_HEADER: token, "content-type": "application/json"}

    async def push(self, connection_id: str, frames: Sequence[Frame]) -> bool:
        """See `ConnectionPush.push`; all frames travel in one request."""
        body = orjson.dumps({"connection_id": connection_id, "messages": list(frames)})
        try:
            status = await self._post(body)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise TransportUnavailableError("the gateway pod did not answer") from error
        if status == HTTPStatus.NOT_FOUND:
            return False
        if status != HTTPStatus.OK:
            raise TransportUnavailableError(f"the gateway pod answered {status}")
        return True

    async def _post(self, body: bytes) -> int:
        async with self._client.post(
            self._url, data=body, headers=self._headers, allow_redirects=False
        ) as answer:
            await answer.read()  # so that the connection can be used again
            return answer.status


class HttpPods:
    """Ways to all pods over one client; a way costs nothing to make, so none is kept."""

    def __init__(self, client: aiohttp.ClientSession, token: str) -> None:
        """Wire it; `token` is the shared push secret."""
        self._client = client
        self._token = token

    def __call__(self, endpoint: str) -> ConnectionPush:
        """Give the way to the pod at a base URL."""
        return HttpPush(client=self._client, endpoint=endpoint, token=self._token)


@asynccontextmanager
async def pod_client() -> AsyncIterator[aiohttp.ClientSession]:
    """Open the client that pushes to pods share.

    Pods are reached directly, whatever proxy the environment names.
    """
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=_MAX_CONNECTIONS, keepalive_timeout=_IDLE_SECONDS),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=_POD_SECONDS, sock_connect=_CONNECT_SECONDS),
        trust_env=False,
    ) as client:
        yield client
