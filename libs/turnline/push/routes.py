"""Ways to pods by endpoint: this process, or another one."""

from collections.abc import Callable, Sequence

from turnline.errors import TransportUnavailableError
from turnline.push.port import ConnectionPush, Frame
from turnline.store import LOCAL_ENDPOINT

PUSH_PATH = "/internal/push"
PUSH_TOKEN_HEADER = "x-ak-push-token"

Remote = Callable[[str], ConnectionPush]


class Routes:
    """Finds the way by endpoint: `local`, or an http(s) base URL."""

    def __init__(
        self, *, local: ConnectionPush | None = None, remote: Remote | None = None
    ) -> None:
        """Wire it.

        Args:
            local: the sockets of this process; None where it holds none.
            remote: makes ways to other pods (`turnline.push.http.HttpPods`); None in a single
                process.
        """
        self._local = local
        self._remote = remote

    def to(self, endpoint: str) -> ConnectionPush:
        """See `PushRoutes.to`; an endpoint this process has no way to is unreachable."""
        if endpoint == LOCAL_ENDPOINT and self._local is not None:
            return self._local
        if endpoint != LOCAL_ENDPOINT and self._remote is not None:
            return self._remote(endpoint)
        return _Unreachable()


class _Unreachable:
    async def push(self, connection_id: str, frames: Sequence[Frame]) -> bool:
        del connection_id, frames
        raise TransportUnavailableError("no way to the pod that holds this connection")
