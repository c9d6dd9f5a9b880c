"""The two ways to a pod: this process, or its authenticated `/internal/push` route."""

from collections.abc import Sequence

import httpx
import orjson

from turnline.errors import TransportUnavailableError
from turnline.push.port import ConnectionPush, Frame
from turnline.store import LOCAL_ENDPOINT

PUSH_PATH = "/internal/push"
PUSH_TOKEN_HEADER = "x-ak-push-token"


class HttpPush:
    """Way to another pod over HTTP (guide: `POST /internal/push`)."""

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
        except httpx.HTTPError as error:
            raise TransportUnavailableError("the gateway pod did not answer") from error
        if answer.status_code == httpx.codes.NOT_FOUND:
            return False
        if answer.is_error:
            raise TransportUnavailableError(f"the gateway pod answered {answer.status_code}")
        return True


class Routes:
    """Finds the way by endpoint: `local`, or an http(s) base URL.

    Ways to pods share one HTTP client and cost nothing to keep, so none is cached.
    """

    def __init__(
        self,
        *,
        local: ConnectionPush | None = None,
        client: httpx.AsyncClient | None = None,
        token: str = "",
    ) -> None:
        """Wire it.

        Args:
            local: the sockets of this process; None where it holds none.
            client: for other pods; None in a single process.
            token: the shared push secret.
        """
        self._local = local
        self._client = client
        self._token = token

    def to(self, endpoint: str) -> ConnectionPush:
        """See `PushRoutes.to`; an endpoint this process has no way to is as good as unreachable."""
        if endpoint == LOCAL_ENDPOINT and self._local is not None:
            return self._local
        if endpoint != LOCAL_ENDPOINT and self._client is not None:
            return HttpPush(client=self._client, endpoint=endpoint, token=self._token)
        return _Unreachable()


class _Unreachable:
    async def push(self, connection_id: str, frames: Sequence[Frame]) -> bool:
        raise TransportUnavailableError("no way to the pod that holds this connection")
