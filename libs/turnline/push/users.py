"""Push to a user: look the connections up, send to all of them at once, forget the stale ones."""

import asyncio
from collections.abc import Sequence

from turnline.errors import StoreUnavailableError, TransportUnavailableError
from turnline.protocol.clock import Clock
from turnline.push.port import Frame, PushRoutes
from turnline.push.signals import PushSignals
from turnline.store import Connection, ConnectionStore

# Rounds of looking again after holding; each needs a socket that was opened in the very moment.
_MAX_ROUNDS = 5
# So many pods fail at once in no installation; more than that is a leak.
_MAX_RESTING = 1_000


class UserPush:
    """Delivers frames to every live socket of a user."""

    def __init__(
        self,
        *,
        connections: ConnectionStore,
        routes: PushRoutes,
        signals: PushSignals,
        clock: Clock,
        timeout: float = 5.0,
        rest: float = 15.0,
    ) -> None:
        """Wire it.

        Args:
            timeout: seconds one pod may take to accept frames.
            rest: seconds for which a pod that did not answer is not asked again, so that a dead
                pod does not slow down every frame of its users until their mappings expire.
        """
        self._connections = connections
        self._routes = routes
        self._signals = signals
        self._clock = clock
        self._timeout = timeout
        self._rest = rest
        self._resting: dict[str, float] = {}

    async def push(self, user_id: str, frames: Sequence[Frame]) -> int:
        """Send `frames`, in order, to each socket of the user; give how many sockets took them.

        A socket whose pod no longer holds it is forgotten, one whose pod does not answer is
        skipped; neither disturbs the others.

        Raises:
            StoreUnavailableError: the connections could not be looked up; nothing was sent.
        """
        return await self._push_to_all(await self._connections.connections_of(user_id), frames)

    async def push_or_hold(self, user_id: str, frames: Sequence[Frame]) -> int:
        """As `push`, but keep the frames for the user's next connection if none took them.

        Raises:
            StoreUnavailableError: some frames may have been sent or kept; try again.
        """
        connections = await self._connections.connections_of(user_id)
        if reached := await self._push_to_all(connections, frames):
            return reached
        for frame in frames:
            await self._connections.hold(user_id, frame)
        for _ in range(_MAX_ROUNDS):
            tried = {connection.connection_id for connection in connections}
            connections = await self._connections.connections_of(user_id)
            if all(one.connection_id in tried for one in connections):
                break
            # A socket was opened meanwhile, and may have looked before these were held.
            held = await self._connections.held(user_id)
            if not held.frames:
                return 1
            if reached := await self._push_to_all(connections, held.frames):
                await self._connections.drop_held(user_id, held.through)
                return reached
        self._signals.held(len(frames))
        return 0

    async def _push_to_all(self, connections: Sequence[Connection], frames: Sequence[Frame]) -> int:
        if len(connections) == 1:
            return int(await self._push_to(connections[0], frames))
        async with asyncio.TaskGroup() as pushes:
            results = [pushes.create_task(self._push_to(one, frames)) for one in connections]
        return sum(result.result() for result in results)

    async def _push_to(self, connection: Connection, frames: Sequence[Frame]) -> bool:
        if self._is_resting(connection.endpoint):
            self._signals.skipped(len(frames))
            return False
        way = self._routes.to(connection.endpoint)
        try:
            async with asyncio.timeout(self._timeout):
                taken = await way.push(connection.connection_id, frames)
        except (TransportUnavailableError, TimeoutError) as error:
            self._let_rest(connection.endpoint)
            self._signals.unreachable(len(frames), reason=type(error).__name__)
            return False
        if taken:
            self._signals.delivered(len(frames))
        else:
            await self._forget(connection, frames)
        return taken

    async def _forget(self, connection: Connection, frames: Sequence[Frame]) -> None:
        self._signals.stale(len(frames), connection_id=connection.connection_id)
        try:
            await self._connections.remove(connection.user_id, connection.connection_id)
        except StoreUnavailableError:
            self._signals.store_unavailable()

    def _is_resting(self, endpoint: str) -> bool:
        until = self._resting.get(endpoint)
        if until is None:
            return False
        if self._clock.monotonic() < until:
            return True
        del self._resting[endpoint]
        return False

    def _let_rest(self, endpoint: str) -> None:
        if len(self._resting) >= _MAX_RESTING:
            self._resting.clear()
        self._resting[endpoint] = self._clock.monotonic() + self._rest
