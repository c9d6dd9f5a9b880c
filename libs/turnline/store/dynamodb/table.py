"""One table: reads that see every write before them, and writes that happen whole or not at all.

The one place that calls the client and translates its errors.  A call that failed in passing is
made again until the deadline, also when it may have had its effect: every write has a condition
that its own effect breaks, so a second effect is a `Conflict`, and who called looks again and finds
what it wrote.  A transaction carries one token through all its tries besides.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from turnline.awssdk import AwsError, AwsFault, call
from turnline.errors import InternalError, StoreUnavailableError
from turnline.protocol import new_request_id
from turnline.protocol.clock import Clock
from turnline.store.dynamodb.items import Item, Key, Value, number, piece_name, pieces, whole
from turnline.store.dynamodb.schema import TableSchema
from turnline.telemetry import get_logger

if TYPE_CHECKING:
    from types_aiobotocore_dynamodb import type_defs  # pants: no-infer-dep
    from types_aiobotocore_dynamodb.client import DynamoDBClient  # pants: no-infer-dep

T = TypeVar("T")

_log = get_logger("store")

CALL_SECONDS = 5.0
TRY_SECONDS = 2.0
_FIRST_PAUSE_SECONDS = 0.025
_LONGEST_PAUSE_SECONDS = 0.5

# Of a cancelled transaction: somebody else was at the item, or it is not as it was seen.
_CONTESTED = frozenset({"ConditionalCheckFailed", "TransactionConflict", "DuplicateItem"})
_IN_PROGRESS = frozenset({"TransactionConflictException", "TransactionInProgressException"})
_THROTTLED = frozenset({"ProvisionedThroughputExceeded", "ThrottlingError"})


class Conflict(Exception):
    """A reason to look again: an item is not as it was read.  This try wrote nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One item to put, or (None) to delete, if a condition holds.

    Attributes:
        condition: an expression; empty: always.
        names / values: what stands for `#...` and `:...` in it.
    """

    key: Key
    item: Item | None
    condition: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)


def puts(partition: str, value: Value) -> Sequence[Write]:
    """Write a value, over whatever is there; what counts it is written in the same step."""
    return [
        Write(key=Key(partition, piece_name(value.sort, place)), item=item)
        for place, item in enumerate(pieces(value))
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """Where a table is and how long to wait for it.

    Attributes:
        setting: dotted name of the setting that holds `name`; faults name it.
        name: the table's.
        deadline: seconds one operation may take, its tries together.
        try_seconds: seconds one call may take before it is made again.
    """

    setting: str
    name: str
    deadline: float = CALL_SECONDS
    try_seconds: float = TRY_SECONDS


class Table:
    """A table.

    Attributes:
        client / clock / name: what it was made with.
        new_id: gives a text that nobody else has.

    Every method raises StoreUnavailableError when no answer comes in time, InternalError when
    DynamoDB refuses a call as wrong.
    """

    def __init__(
        self,
        client: "DynamoDBClient",
        schema: TableSchema,
        options: TableOptions,
        clock: Clock,
        *,
        chance: Random | None = None,
        new_id: Callable[[], str] = new_request_id,
    ) -> None:
        self.client = client
        self._schema = schema
        self._options = options
        self._chance = chance or Random()
        self._lost_at: float | None = None
        self.clock = clock
        self.name = options.name
        self.new_id = new_id

    @asynccontextmanager
    async def deadline(self) -> AsyncIterator[None]:
        """Bound what is done in the block as one operation."""
        try:
            async with asyncio.timeout(self._options.deadline):
                yield
        except TimeoutError as error:
            self._lost("deadline")
            raise StoreUnavailableError("The store did not answer in time") from error

    async def pause(self, tries: int, *, longest: float = _LONGEST_PAUSE_SECONDS) -> None:
        """Wait before try number `tries` + 1, longer each time and never as long as others do."""
        seconds = min(longest, _FIRST_PAUSE_SECONDS * 2.0 ** min(tries, 10))
        seconds *= self._chance.uniform(0.2, 1.0)
        await self.clock.sleep_until(self.clock.monotonic() + seconds)

    async def get(self, key: Key) -> Item | None:
        """Read one item as the last write left it; None if there is none."""
        answer = await self._call(
            lambda: self.client.get_item(
                TableName=self._options.name, Key=self._key(key), ConsistentRead=True
            )
        )
        found: Item | None = answer.get("Item")
        return found

    async def look(self, key: Key) -> Item | None:
        """Read as `get` does, with a single try: for who looks again anyway."""
        try:
            answer = await call(
                self.client.get_item(
                    TableName=self._options.name, Key=self._key(key), ConsistentRead=True
                ),
                seconds=self._options.try_seconds,
            )
        except AwsError as error:
            self._lost(error.code)
            if error.passes:
                raise StoreUnavailableError("The store did not answer in time") from error
            raise _translated(error) from error
        self._found()
        found: Item | None = answer.get("Item")
        return found

    async def between(
        self, partition: str, first: str, last: str, *, limit: int | None = None
    ) -> Sequence[Item]:
        """Read the items whose sort keys are in first..last, in their order, both included.

        Args:
            limit: give at most so many; None: all there are.
        """
        request: dict[str, Any] = {
            "TableName": self._options.name,
            "ConsistentRead": True,
            "KeyConditionExpression": "#p = :p AND #s BETWEEN :first AND :last",
            "ExpressionAttributeNames": {
                "#p": self._schema.partition_key,
                "#s": self._schema.sort_key,
            },
            "ExpressionAttributeValues": {
                ":p": {"S": partition},
                ":first": {"S": first},
                ":last": {"S": last},
            },
        }
        return await self._pages(request, limit)

    async def value(self, partition: str, name: str) -> tuple[bytes, Item] | None:
        """Read a value, and its first piece; None if it is not there."""
        first = await self.get(Key(partition, piece_name(name, 0)))
        if first is None:
            return None
        items = [first]
        count = number(first, "pieces")
        if count > 1:
            places = (piece_name(name, 1), piece_name(name, count - 1))
            items += await self.between(partition, *places)
        exact = {piece_name(name, place) for place in range(count)}
        key = self._schema.sort_key
        found = whole((item for item in items if item[key]["S"] in exact), key)
        return (found[0][1], first) if found else None

    async def of(self, partition: str) -> Sequence[Item]:
        """Read every item of a partition, in the order of their sort keys."""
        request: dict[str, Any] = {
            "TableName": self._options.name,
            "ConsistentRead": True,
            "KeyConditionExpression": "#p = :p",
            "ExpressionAttributeNames": {"#p": self._schema.partition_key},
            "ExpressionAttributeValues": {":p": {"S": partition}},
        }
        return await self._pages(request, None)

    async def write(self, writes: Sequence[Write]) -> None:
        """Write all of them, or none.

        Raises:
            Conflict: a condition does not hold, or others write the same items.
        """
        if len(writes) == 1:
            await self._call(lambda: self._single(writes[0]))
            return
        token = self.new_id()
        await self._call(
            lambda: self.client.transact_write_items(
                TransactItems=[self._part(write) for write in writes],
                ClientRequestToken=token,
            )
        )

    async def update(
        self,
        key: Key,
        change: str,
        *,
        condition: str,
        names: Mapping[str, str],
        values: Mapping[str, Any],
    ) -> Item:
        """Change attributes of one item by an update expression; gives the item as it is now.

        Raises:
            Conflict: the condition does not hold.
        """
        answer = await self._call(
            lambda: self.client.update_item(
                TableName=self._options.name,
                Key=self._key(key),
                UpdateExpression=change,
                ReturnValues="ALL_NEW",
                **_condition(condition, names, values),
            )
        )
        return dict(answer["Attributes"])

    async def check(self) -> None:
        """Return if the table answers."""
        async with self.deadline():
            await self.get(Key("~check", "~check"))

    # --- calls ----------------------------------------------------------------------------------

    async def _pages(self, request: dict[str, Any], limit: int | None) -> Sequence[Item]:
        found: list[Item] = []
        while True:
            if limit is not None:
                request["Limit"] = limit - len(found)
            page = await self._call(lambda: self.client.query(**request))
            found += page["Items"]
            further = page.get("LastEvaluatedKey")
            if not further or (limit is not None and len(found) >= limit):
                return found
            request["ExclusiveStartKey"] = further

    def _single(self, write: Write) -> Coroutine[Any, Any, Any]:
        stated = _condition(write.condition, write.names, write.values)
        if write.item is None:
            return self.client.delete_item(
                TableName=self._options.name, Key=self._key(write.key), **stated
            )
        return self.client.put_item(
            TableName=self._options.name, Item=self._key(write.key) | write.item, **stated
        )

    def _part(self, write: Write) -> "type_defs.TransactWriteItemTypeDef":
        stated = _condition(write.condition, write.names, write.values)
        # The client's types of both are one shape with other names.
        part: Any = stated | {"TableName": self._options.name}
        if write.item is None:
            return {"Delete": part | {"Key": self._key(write.key)}}
        return {"Put": part | {"Item": self._key(write.key) | write.item}}

    def _key(self, key: Key) -> Item:
        return {
            self._schema.partition_key: {"S": key.partition},
            self._schema.sort_key: {"S": key.sort},
        }

    async def _call(self, make: Callable[[], Awaitable[T]]) -> T:
        """Call, again and again while that may help; the operation's deadline ends it."""
        tries = 0
        async with self.deadline():
            while True:
                try:
                    answer = await call(_awaited(make()), seconds=self._options.try_seconds)
                except AwsError as error:
                    if not _passes(error):
                        raise _translated(error) from error
                    self._lost(error.code)
                else:
                    self._found()
                    return answer
                await self.pause(tries)
                tries += 1

    def _lost(self, reason: str) -> None:
        if self._lost_at is None:
            self._lost_at = self.clock.monotonic()
            _log.warning("dependency.unavailable", dependency=self._options.setting, reason=reason)

    def _found(self) -> None:
        if self._lost_at is not None:
            seconds = round(self.clock.monotonic() - self._lost_at, 3)
            self._lost_at = None
            _log.info("dependency.recovered", dependency=self._options.setting, seconds=seconds)


async def _awaited(work: Awaitable[T]) -> T:
    return await work


def _condition(
    expression: str, names: Mapping[str, str], values: Mapping[str, Any]
) -> dict[str, Any]:
    stated: dict[str, Any] = {"ConditionExpression": expression} if expression else {}
    if names:
        stated["ExpressionAttributeNames"] = dict(names)
    if values:
        stated["ExpressionAttributeValues"] = dict(values)
    return stated


def _reasons(error: AwsError) -> frozenset[str]:
    return frozenset(str(reason.get("Code", "None")) for reason in error.reasons) - {"None"}


def _passes(error: AwsError) -> bool:
    """Whether the same call may succeed a little later.

    A transaction that is still in progress under our own token is waited for, and one of others
    that an item is in; one that was cancelled for throughput alone is made again.
    """
    if error.passes or error.code in _IN_PROGRESS:
        return True
    reasons = _reasons(error)
    return bool(reasons) and reasons <= _THROTTLED


def _translated(error: AwsError) -> Exception:
    reasons = _reasons(error)
    contested = bool(reasons) and reasons <= _CONTESTED | _THROTTLED
    if contested or error.code == "ConditionalCheckFailedException":
        return Conflict()
    if error.fault in (AwsFault.DENIED, AwsFault.MISSING):
        # Permissions are repaired and tables restored while processes run.
        return StoreUnavailableError("The store refuses calls for now")
    return InternalError("The store refused a call as wrong")
