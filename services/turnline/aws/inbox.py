"""What is held for a user who had no socket: brought to one that came, and then dropped.

API Gateway takes no frame for a socket before its `$connect` is answered, so this is done later: by
who is called for it, or with the socket's first frame, before that is answered.  What a crash in
between repeats is known to the client by its place or its `push_id`.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import orjson

from turnline.aws.environment import Event
from turnline.awssdk import AwsError, AwsOptions, call, open_client
from turnline.errors import StoreUnavailableError, TransportUnavailableError
from turnline.push import PushRoutes, PushSignals
from turnline.store import Connection, ConnectionStore
from turnline.telemetry import get_logger

_log = get_logger("aws")

# A frame waits for this, and its client for the frame's answer.
FRAME_SECONDS = 2.0
# Where nobody waits.
APART_SECONDS = 20.0
_ASK_SECONDS = 2.0
_ASKED = "turnline_held_frames"


class StillHeldError(Exception):
    """A socket was not given what is held for it; another try may do it."""


class Inbox:
    """Gives held frames to single sockets."""

    def __init__(
        self, *, connections: ConnectionStore, routes: PushRoutes, signals: PushSignals
    ) -> None:
        """Wire it; `routes` lead to API Gateway's sockets."""
        self._connections = connections
        self._routes = routes
        self._signals = signals

    async def holds_for(self, user_id: str) -> bool:
        """Whether something is held; False too while the store is away."""
        try:
            return bool((await self._connections.held(user_id)).frames)
        except StoreUnavailableError as error:
            _log.warning(
                "dependency.unavailable", dependency="connection store", reason=error.message
            )
            return False

    async def note(self, connection: Connection) -> None:
        """Note a socket again: a push during its handshake may have found it gone."""
        try:
            await self._connections.add(connection)
        except StoreUnavailableError as error:
            _log.warning(
                "dependency.unavailable", dependency="connection store", reason=error.message
            )

    async def give_to(self, connection: Connection, *, seconds: float = FRAME_SECONDS) -> bool:
        """Send what is held to a socket, oldest first, and drop it; what fails stays held.

        False: something is left, since the socket is gone, or did not get it within `seconds`.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self._give(connection)
        except (StoreUnavailableError, TransportUnavailableError) as error:
            _log.warning("dependency.unavailable", dependency="inbox", reason=error.message)
        except TimeoutError:
            _log.warning("dependency.unavailable", dependency="inbox", reason="timeout")
        return False

    async def give_apart(self, connection: Connection, *, seconds: float) -> None:
        """As `give_to`, for a call that is repeated if it fails.

        Raises:
            StillHeldError: something is left.
        """
        await self.note(connection)
        if not await self.give_to(connection, seconds=seconds):
            raise StillHeldError("what is held was not taken")

    async def _give(self, connection: Connection) -> bool:
        held = await self._connections.held(connection.user_id)
        if not held.frames:
            return True
        # Something was held though it came: a push may have found it gone, and forgotten it.
        await self._connections.add(connection)
        way = self._routes.to(connection.endpoint)
        if not await way.push(connection.connection_id, held.frames):
            return False
        self._signals.delivered(len(held.frames))
        await self._connections.drop_held(connection.user_id, held.through)
        return True


class SelfCall:
    """Has another invocation of this very function give a socket what is held."""

    def __init__(self, client: Any, *, function: str, version: str) -> None:  # noqa: ANN401
        """Name the function as Lambda does to its processes; without a client nobody is called."""
        self._client = client
        self._target = {"FunctionName": function}
        if version not in ("", "$LATEST"):
            self._target["Qualifier"] = version

    async def ask(self, connection: Connection) -> None:
        """Start it, without waiting for it; what cannot be started is left to the first frame."""
        if self._client is None:
            return
        try:
            await call(
                self._client.invoke(
                    **self._target,
                    InvocationType="Event",
                    Payload=orjson.dumps(_asking(connection)),
                ),
                seconds=_ASK_SECONDS,
            )
        except AwsError as error:
            _log.warning("dependency.unavailable", dependency="lambda", reason=error.code)


@asynccontextmanager
async def open_self_call(environ: Mapping[str, str]) -> AsyncIterator[SelfCall]:
    """Open the call of the function that Lambda says this process runs; none: calls nobody."""
    function = environ.get("AWS_LAMBDA_FUNCTION_NAME", "")
    version = environ.get("AWS_LAMBDA_FUNCTION_VERSION", "")
    if not function:
        yield SelfCall(None, function=function, version=version)
        return
    async with open_client("lambda", AwsOptions(request_seconds=_ASK_SECONDS)) as client:
        yield SelfCall(client, function=function, version=version)


def asked_for(event: Event) -> Connection | None:
    """Give the socket that a `SelfCall` names; None: the event is another one."""
    asked = event.get(_ASKED)
    return Connection(**asked) if isinstance(asked, dict) else None


def _asking(connection: Connection) -> Event:
    return {
        _ASKED: {
            "user_id": connection.user_id,
            "connection_id": connection.connection_id,
            "endpoint": connection.endpoint,
        }
    }
