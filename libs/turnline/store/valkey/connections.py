"""Connections and held frames on a Valkey or Redis server."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from turnline.store.json_values import decode_object, encode_json
from turnline.store.ports import Connection, Held
from turnline.store.valkey import connection_scripts as scripts
from turnline.store.valkey.commands import Commands
from turnline.store.valkey.keys import UserNames, user_names


@dataclass(frozen=True, slots=True, kw_only=True)
class ValkeyConnectionOptions:
    """Bounds of a ValkeyConnectionStore.

    Attributes:
        prefix: what names on the server begin with.
        ttl: seconds a connection is kept after it was last added.
        held_ttl: seconds a frame is held.
        max_held_per_user: frames held for one user; the oldest give way.
    """

    prefix: str
    ttl: float
    held_ttl: float = 86_400.0
    max_held_per_user: int = 100


class ValkeyConnectionStore:
    """A ConnectionStore that any number of processes share."""

    def __init__(self, options: ValkeyConnectionOptions, commands: Commands) -> None:
        self._options = options
        self._ttl = max(1, round(options.ttl * 1000))
        self._held_ttl = max(1, round(options.held_ttl * 1000))
        self._commands = commands

    async def add(self, connection: Connection) -> None:
        """Record a socket, or refresh its expiry; its place among the user's stays."""
        keys = self._names(connection.user_id)[:1]
        await self._commands.run(
            scripts.ADD, keys, self._ttl, connection.connection_id, connection.endpoint
        )

    async def remove(self, user_id: str, connection_id: str) -> None:
        """Forget a socket."""
        await self._commands.call("HDEL", self._names(user_id).sockets, connection_id)

    async def connections_of(self, user_id: str) -> Sequence[Connection]:
        """Give the live sockets of a user, oldest first."""
        found: list[bytes] = await self._commands.run(scripts.SOCKETS, self._names(user_id)[:1])
        sockets = []
        for connection_id, value in zip(found[::2], found[1::2], strict=True):
            _, since, endpoint = value.split(b";", 2)
            sockets.append((int(since), connection_id.decode(), endpoint.decode()))
        return tuple(
            [
                Connection(user_id=user_id, connection_id=connection_id, endpoint=endpoint)
                for _, connection_id, endpoint in sorted(sockets, key=lambda socket: socket[0])
            ]
        )

    async def hold(self, user_id: str, frame: dict[str, Any]) -> None:
        """Keep a frame for a user who has no socket now."""
        body = encode_json(frame, name="frame")
        keys = self._names(user_id)[1:]
        await self._commands.run(
            scripts.HOLD, keys, self._held_ttl, self._options.max_held_per_user, body
        )

    async def held(self, user_id: str) -> Held:
        """Give the held frames."""
        found: list[bytes] = await self._commands.run(scripts.HELD, self._names(user_id)[1:])
        return Held(
            frames=tuple(map(decode_object, found[1:])),
            through=found[0].decode() if found else "",
        )

    async def drop_held(self, user_id: str, through: str) -> None:
        """Forget the held frames up to one that was given."""
        await self._commands.run(scripts.DROP, self._names(user_id)[1:], through)

    async def check(self) -> None:
        """Return if the server answers."""
        await self._commands.call("PING")

    def _names(self, user_id: str) -> UserNames:
        return user_names(self._options.prefix, user_id)
