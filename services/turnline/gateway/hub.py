"""The sockets of this pod: who holds which, and the way frames reach them."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from turnline.errors import StoreUnavailableError
from turnline.gateway.sockets import Socket
from turnline.push import Frame
from turnline.store import Connection, ConnectionStore, Held
from turnline.telemetry import get_logger

_log = get_logger("gateway")

SERVICE_RESTART = 1012
SERVICE_RESTART_REASON = "server restarting; reconnect"

Visit = Callable[[Socket], Awaitable[None]]

_LAST_FRAMES_SECONDS = 0.5


class Hub:
    """Holds this pod's sockets; a `ConnectionPush` for them."""

    def __init__(
        self,
        *,
        connections: ConnectionStore,
        endpoint: str,
        max_per_user: int,
        pause: Callable[[], float],
    ) -> None:
        """Wire it.

        Args:
            endpoint: this pod's push address, recorded with each socket.
            max_per_user: sockets one user may hold on this pod.
            pause: gives the seconds a client is asked to wait before it reconnects; differs from
                call to call, so that clients do not come back as one.
        """
        self._connections = connections
        self._endpoint = endpoint
        self._max_per_user = max_per_user
        self._pause = pause
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
        """Hold a socket and give it what was kept for its user; `remove` it whatever happens.

        Raises:
            StoreUnavailableError: its mapping could not be recorded.
        """
        self._sockets[socket.connection_id] = socket
        self._per_user[socket.user_id] += 1
        await self._record(socket)

    async def remove(self, socket: Socket, *, timeout: float = 1.0) -> None:
        """Let go of a socket; its mapping expires by itself if the store is away.

        Waits for the store no longer than a drain with little grace can spare.
        """
        self._forget(socket)
        try:
            async with asyncio.timeout(timeout):
                await self._connections.remove(socket.user_id, socket.connection_id)
        except (StoreUnavailableError, TimeoutError):
            _log.warning("dependency.unavailable", dependency="connection store")

    async def refresh(self, every: float) -> None:
        """Keep the mappings of held sockets alive, every so many seconds, until cancelled.

        Brings back the mappings of a store that has lost them, and collects what was held because
        this pod could not be reached.
        """
        await self.visit_all(every, self._record)

    async def visit_all(self, every: float, visit: Visit) -> None:
        """Do something with each held socket, every so many seconds, until cancelled.

        A store that is away ends a round, and the next one begins in time.
        """
        while True:
            await asyncio.sleep(every)
            try:
                for connection_id in list(self._sockets):
                    if (socket := self._sockets.get(connection_id)) is not None:
                        await visit(socket)
            except StoreUnavailableError:
                _log.warning("dependency.unavailable", dependency="store")

    async def close_all(self, *, spread: float) -> None:
        """Tell every client to reconnect, spread over so many seconds.

        Each gets its own pause in a last frame.  A client that does not read holds up no other.
        """
        sockets = list(self._sockets.values())
        step = spread / len(sockets) if sockets else 0.0
        async with asyncio.TaskGroup() as farewells:
            for number, socket in enumerate(sockets):
                farewells.create_task(self._say_farewell(socket, after=number * step))

    async def _say_farewell(self, socket: Socket, *, after: float) -> None:
        await asyncio.sleep(after)
        socket.answer(
            {
                "status": "RECONNECT",
                "message": "The server is restarting",
                "retry_after": round(self._pause(), 2),
                "type": "SYSTEM_RESPONSE",
            }
        )
        try:
            async with asyncio.timeout(_LAST_FRAMES_SECONDS):
                await socket.drained()
        except TimeoutError:
            _log.info("connection.slow_at_close", connection_id=socket.connection_id)
        await socket.shut(SERVICE_RESTART, SERVICE_RESTART_REASON)

    async def _record(self, socket: Socket) -> None:
        user_id = socket.user_id
        await self._connections.add(
            Connection(user_id=user_id, connection_id=socket.connection_id, endpoint=self._endpoint)
        )
        held = await self._connections.held(user_id)
        if held.frames and await self._sent(socket, held):
            await self._drop(user_id, held)

    async def _drop(self, user_id: str, held: Held) -> None:
        """Drop what a socket has; where the store is away, the next refresh does it."""
        try:
            await self._connections.drop_held(user_id, held.through)
        except StoreUnavailableError:
            _log.warning("dependency.unavailable", dependency="connection store")

    async def _sent(self, socket: Socket, held: Held) -> bool:
        """Push what is held and wait a little until it was written; False: it stays held.

        A client that does not read is waited for once, and looked at again at each refresh; a
        socket is not sent again what it has.
        """
        if socket.busy or not socket.push(held.frames):
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_FRAMES_SECONDS):
                await socket.drained()
        return not socket.busy and not socket.closed

    def _forget(self, socket: Socket) -> None:
        if self._sockets.pop(socket.connection_id, None) is not None:
            self._per_user[socket.user_id] -= 1
            if not self._per_user[socket.user_id]:
                del self._per_user[socket.user_id]
