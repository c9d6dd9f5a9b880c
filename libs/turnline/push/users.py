"""Push to a user: look the connections up, send to all of them at once, forget the stale ones."""

import asyncio
from collections.abc import Sequence

from turnline.errors import TransportUnavailableError
from turnline.push.port import Frame, PushRoutes
from turnline.store import Connection, ConnectionStore
from turnline.telemetry import get_logger

_log = get_logger("push")


class UserPush:
    """Delivers frames to every live socket of a user."""

    def __init__(
        self, *, connections: ConnectionStore, routes: PushRoutes, timeout: float = 5.0
    ) -> None:
        """Wire it; `timeout` is the seconds one pod may take to accept frames."""
        self._connections = connections
        self._routes = routes
        self._timeout = timeout

    async def push(self, user_id: str, frames: Sequence[Frame]) -> int:
        """Send `frames`, in order, to each socket of the user; give how many sockets took them.

        A socket whose pod no longer holds it is forgotten, one whose pod does not answer is
        skipped; neither disturbs the others.

        Raises:
            StoreUnavailableError: the connection store did not answer.
        """
        connections = await self._connections.connections_of(user_id)
        if len(connections) == 1:
            return int(await self._push_to(connections[0], frames))
        async with asyncio.TaskGroup() as pushes:
            results = [pushes.create_task(self._push_to(c, frames)) for c in connections]
        return sum(result.result() for result in results)

    async def push_or_hold(self, user_id: str, frames: Sequence[Frame]) -> int:
        """As `push`, but keep the frames for the user's next connection if none took them."""
        reached = await self.push(user_id, frames)
        if reached:
            return reached
        for frame in frames:
            await self._connections.hold(user_id, frame)
        if await self._connections.connections_of(user_id):
            # A socket opened between the push and the hold and has collected its held frames
            # already, without these.
            return await self.push(user_id, await self._connections.take_held(user_id))
        return 0

    async def _push_to(self, connection: Connection, frames: Sequence[Frame]) -> bool:
        way = self._routes.to(connection.endpoint)
        try:
            async with asyncio.timeout(self._timeout):
                taken = await way.push(connection.connection_id, frames)
        except (TransportUnavailableError, TimeoutError) as error:
            _log.warning("push.unreachable", reason=type(error).__name__)
            return False
        if not taken:
            await self._connections.remove(connection.user_id, connection.connection_id)
            _log.info("push.stale_connection", connection_id=connection.connection_id)
        return taken
