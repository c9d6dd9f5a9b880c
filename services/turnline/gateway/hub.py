"""The sockets of this pod: who holds which, and the way frames reach them."""

import asyncio
import random
from collections import Counter
from collections.abc import Sequence

from turnline.errors import StoreUnavailableError
from turnline.gateway.sockets import Socket
from turnline.push import Frame
from turnline.store import Connection, ConnectionStore
from turnline.telemetry import get_logger

_log = get_logger("gateway")

SERVICE_RESTART = 1012


class Hub:
    """Holds this pod's sockets; a `ConnectionPush` for them."""

    def __init__(self, *, connections: ConnectionStore, endpoint: str, max_per_user: int) -> None:
        """Wire it.

        Args:
            endpoint: this pod's push address, recorded with each socket.
            max_per_user: sockets one user may hold on this pod.
        """
        self._connections = connections
        self._endpoint = endpoint
        self._max_per_user = max_per_user
        self._sockets: dict[str, Socket] = {}
        self._per_user: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """Sockets held now."""
        return len(self._sockets)

    async def push(self, connection_id: str, frames: Sequence[Frame]) -> bool:
        """See `ConnectionPush.push`; never waits for a client."""
        socket = self._sockets.get(connection_id)
        return socket is not None and socket.push(frames)

    def has_room_for(self, user_id: str) -> bool:
        """Whether the user may open one more socket here."""
        return self._per_user[user_id] < self._max_per_user

    async def add(self, socket: Socket) -> None:
        """Hold a socket and give it what was kept for its user.

        Raises:
            StoreUnavailableError: its mapping could not be recorded; it is not held.
        """
        self._sockets[socket.connection_id] = socket
        self._per_user[socket.user_id] += 1
        try:
            await self._connections.add(self._connection(socket))
            socket.push(await self._connections.take_held(socket.user_id))
        except StoreUnavailableError:
            self._forget(socket)
            raise

    async def remove(self, socket: Socket, *, timeout: float = 5.0) -> None:
        """Let go of a socket; its mapping expires by itself if the store is away."""
        socket.gone()
        self._forget(socket)
        try:
            async with asyncio.timeout(timeout):
                await self._connections.remove(socket.user_id, socket.connection_id)
        except (StoreUnavailableError, TimeoutError):
            _log.warning("dependency.unavailable", dependency="connection store")

    async def refresh(self, every: float) -> None:
        """Keep the mappings of held sockets from expiring, every so many seconds, until cancelled."""
        while True:
            await asyncio.sleep(every)
            try:
                for socket in list(self._sockets.values()):
                    await self._connections.add(self._connection(socket))
            except StoreUnavailableError:
                _log.warning("dependency.unavailable", dependency="connection store")

    async def close_all(self, *, spread: float) -> None:
        """Tell every client to reconnect, spread over so many seconds.

        Each gets its own pause in a last frame, so that they do not come back as one.
        """
        sockets = list(self._sockets.values())
        pause = spread / len(sockets) if sockets else 0.0
        for socket in sockets:
            retry_after = round(random.uniform(0.5, 5.0), 2)
            socket.answer(
                {
                    "status": "RECONNECT",
                    "message": "The server is restarting",
                    "retry_after": retry_after,
                    "type": "SYSTEM_RESPONSE",
                }
            )
            try:
                async with asyncio.timeout(1.0):
                    await socket.drained()
            except TimeoutError:
                _log.info("connection.slow_at_close", connection_id=socket.connection_id)
            await socket.shut(SERVICE_RESTART, "server restarting; reconnect")
            await asyncio.sleep(pause)

    def _connection(self, socket: Socket) -> Connection:
        return Connection(
            user_id=socket.user_id,
            connection_id=socket.connection_id,
            endpoint=self._endpoint,
        )

    def _forget(self, socket: Socket) -> None:
        if self._sockets.pop(socket.connection_id, None) is not None:
            self._per_user[socket.user_id] -= 1
            if not self._per_user[socket.user_id]:
                del self._per_user[socket.user_id]
