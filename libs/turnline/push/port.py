"""Pushing frames to client sockets, wherever they are held.

A frame is a JSON object as the client sees it.  A user's sockets are looked up at push time, so a
reply finds connections that were opened after its turn began (guide, "WebSocket Delivery").
"""

from collections.abc import Sequence
from typing import Any, Protocol

Frame = dict[str, Any]


class ConnectionPush(Protocol):
    """Way to the sockets of one pod."""

    async def push(self, connection_id: str, frames: Sequence[Frame]) -> bool:
        """Hand frames to a socket, in order; False when the pod does not hold it any more.

        Returns when the socket's pod has taken the frames, not when the client has read them.

        Raises:
            TransportUnavailableError: the pod did not answer in time.
        """
        ...


class PushRoutes(Protocol):
    """Finds the way to a pod."""

    def to(self, endpoint: str) -> ConnectionPush:
        """Give the way to the pod at `endpoint` (`local` is this process)."""
        ...
