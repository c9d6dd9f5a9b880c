"""Connections and held frames in a DynamoDB table, with the schema of the guide.

A socket is an item under its user, `endpoint` and `since` beside the guide's attributes; one
without an endpoint is of somebody else who shares the table, and is passed over.  Held frames lie
in a partition of their own beside it, so that nobody takes them for sockets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from turnline.errors import PayloadTooLargeError
from turnline.store.dynamodb.items import (
    EXPIRY,
    MAX_WRITE_BYTES,
    Item,
    Key,
    Value,
    expired,
    expiry,
    n,
    number,
    text,
    whole,
)
from turnline.store.dynamodb.settle import Step, over, settle
from turnline.store.dynamodb.table import Table, Write, puts
from turnline.store.json_values import decode_object, encode_json
from turnline.store.ports import Connection, Held

_HELD = "held"


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoDbConnectionOptions:
    """Bounds of a DynamoDbConnectionStore.

    Attributes:
        ttl: seconds a connection is kept after it was last added, rounded up to whole seconds.
        held_ttl: seconds a frame is held, rounded up alike.
        max_held_per_user: frames held for one user; the oldest give way.
    """

    ttl: float
    held_ttl: float = 86_400.0
    max_held_per_user: int = 100


class DynamoDbConnectionStore:
    """A ConnectionStore that any number of processes share."""

    def __init__(self, options: DynamoDbConnectionOptions, table: Table) -> None:
        self._options = options
        self._table = table

    async def add(self, connection: Connection) -> None:
        """Record a socket, or refresh its expiry; its place among the user's stays."""
        now = self._table.clock.time()
        async with self._table.deadline():
            await self._table.update(
                Key(_user(connection.user_id), connection.connection_id),
                "SET #endpoint = :endpoint, #expiry = :expiry, "
                "#since = if_not_exists(#since, :since)",
                condition="",
                names={"#endpoint": "endpoint", "#expiry": EXPIRY, "#since": "since"},
                values={
                    ":endpoint": {"S": connection.endpoint},
                    ":expiry": n(expiry(now, self._options.ttl)),
                    ":since": n(int(now * 1_000_000)),
                },
            )

    async def remove(self, user_id: str, connection_id: str) -> None:
        """Forget a socket."""
        async with self._table.deadline():
            await self._table.write([Write(key=Key(_user(user_id), connection_id), item=None)])

    async def connections_of(self, user_id: str) -> Sequence[Connection]:
        """Give the live sockets of a user, oldest first."""
        now = self._table.clock.time()
        async with self._table.deadline():
            items = await self._table.of(_user(user_id))
        live = [item for item in items if not expired(item, now) and "endpoint" in item]
        live.sort(key=lambda item: number(item, "since"))
        return tuple(
            Connection(
                user_id=user_id,
                connection_id=text(item, "connection_id") or "",
                endpoint=text(item, "endpoint") or "",
            )
            for item in live
        )

    async def hold(self, user_id: str, frame: dict[str, Any]) -> None:
        """Keep a frame for a user who has no socket now.

        Raises:
            PayloadTooLargeError: it is over the size of a transaction.
        """
        body = encode_json(frame, name="frame")
        if len(body) > MAX_WRITE_BYTES:
            raise PayloadTooLargeError(
                "The frame is too large to be held", limit_bytes=MAX_WRITE_BYTES, field=""
            )
        name = Key(_held(user_id), _HELD)

        async def decide(head: Item | None, writer: str) -> Step[None]:
            first, place = _range(head)
            expires = expiry(self._table.clock.time(), self._options.held_ttl)
            first = max(first, place + 1 - self._options.max_held_per_user)
            value = Value(_frame(place), body, {EXPIRY: n(expires)})
            step = over(head, name, _head(first, place + 1, writer, expires))
            return Step(None, [step, *puts(name.partition, value)])

        await settle(self._table, name, decide)

    async def held(self, user_id: str) -> Held:
        """Give the held frames."""
        name = Key(_held(user_id), _HELD)
        async with self._table.deadline():
            first, end = _range(await self._table.get(name))
            if first == end:
                return Held(frames=(), through="")
            items = await self._table.between(name.partition, _frame(first), _frame(end))
        now = self._table.clock.time()
        frames = tuple(
            decode_object(body)
            for _, body, item in whole(items, "connection_id")
            if not expired(item, now)
        )
        return Held(frames=frames, through=str(end) if frames else "")

    async def drop_held(self, user_id: str, through: str) -> None:
        """Forget the held frames up to one that was given; they are removed as they expire."""
        name = Key(_held(user_id), _HELD)
        behind = int(through or 0)

        async def decide(head: Item | None, writer: str) -> Step[None]:
            first, end = _range(head)
            if head is None or behind <= first:
                return Step(None)
            left = _head(min(behind, end), end, writer, number(head, EXPIRY))
            return Step(None, [over(head, name, left)])

        await settle(self._table, name, decide)

    async def check(self) -> None:
        """Return if the table answers."""
        await self._table.check()


def _user(user_id: str) -> str:
    """Give the partition of a user's sockets: the user id, as the guide has it.

    A key may not be empty, and `~` at its beginning is ours.
    """
    if not user_id:
        return "~1"
    return f"~0{user_id}" if user_id.startswith("~") else user_id


def _held(user_id: str) -> str:
    """Give the partition of a user's held frames; no user's own is the same."""
    return f"~2{user_id}"


def _frame(place: int) -> str:
    return f"frame#{place:016d}"


def _range(head: Item | None) -> tuple[int, int]:
    """Give the numbers of the frames that are held: first, and behind the last."""
    return (0, 0) if head is None else (number(head, "first"), number(head, "end"))


def _head(first: int, end: int, writer: str, expires: int) -> Item:
    return {"first": n(first), "end": n(end), "writer": {"S": writer}, EXPIRY: n(expires)}
