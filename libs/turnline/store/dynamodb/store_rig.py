"""The shared stores as the suites want them: over an emulator, in time that a test moves on."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from turnline.awssdk import AwsOptions, open_client
from turnline.protocol.clock import Clock, SystemClock, Timer
from turnline.store import ConnectionStore, ResponseStore, SessionStore
from turnline.store.dynamodb.connections import DynamoDbConnectionOptions, DynamoDbConnectionStore
from turnline.store.dynamodb.items import EXPIRY
from turnline.store.dynamodb.replies import DynamoDbResponseOptions, DynamoDbResponseStore
from turnline.store.dynamodb.schema import (
    CONNECTIONS,
    RESPONSES,
    SESSIONS,
    TableSchema,
    create_table,
)
from turnline.store.dynamodb.sessions import DynamoDbSessionOptions, DynamoDbSessionStore
from turnline.store.dynamodb.table import Table, TableOptions
from turnline.testing.conformance.stores import ConnectionLimits, ReplyLimits, SessionLimits

if TYPE_CHECKING:
    from types_aiobotocore_dynamodb.client import DynamoDBClient  # pants: no-infer-dep

REGION = "eu-west-1"
DAY = 86_400.0
# For what is not about time: a busy machine may take what it likes.
PATIENT_SECONDS = 30.0
_NONE: Mapping[str, str] = MappingProxyType({})
_numbers = itertools.count(1)


class MovedClock:
    """The machine's clock, which a test may move on."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._moved = 0.0
        self._timers: set[_Timer] = set()

    def time(self) -> float:
        """Seconds since the epoch, and what it was moved on by."""
        return self._clock.time() + self._moved

    def monotonic(self) -> float:
        """Seconds since an unnamed moment, and what it was moved on by."""
        return self._clock.monotonic() + self._moved

    async def sleep_until(self, monotonic: float) -> None:
        """Wait for the moment, or until somebody moves the clock behind it."""
        woken = asyncio.Event()
        timer = self.call_at(monotonic, woken.set)
        try:
            await woken.wait()
        finally:
            timer.cancel()

    def call_at(self, monotonic: float, callback: Callable[[], None]) -> Timer:
        """Call at the moment, or when somebody moves the clock behind it."""
        timer = _Timer(self, monotonic, callback)
        self._timers.add(timer)
        return timer

    def move(self, seconds: float) -> None:
        """Let time pass at once."""
        self._moved += seconds
        for timer in list(self._timers):
            timer.arm()

    def forget(self, timer: "_Timer") -> None:
        """Keep it no longer."""
        self._timers.discard(timer)


class _Timer:
    def __init__(self, clock: MovedClock, moment: float, callback: Callable[[], None]) -> None:
        self._clock = clock
        self._moment = moment
        self._callback = callback
        self._handle: asyncio.TimerHandle | None = None
        self.arm()

    def arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        delay = max(0.0, self._moment - self._clock.monotonic())
        self._handle = asyncio.get_running_loop().call_later(delay, self._run)

    def cancel(self) -> None:
        self._clock.forget(self)
        if self._handle is not None:
            self._handle.cancel()

    def _run(self) -> None:
        self._clock.forget(self)
        self._callback()


class MovedTime:
    """Time for the suites: ticks of a minute, during which the emulator may take what it likes."""

    tick = 60.0
    patience = 30.0

    def __init__(self) -> None:
        self.clock = MovedClock()

    async def pass_ticks(self, ticks: float) -> None:
        """Let them pass."""
        self.clock.move(ticks * self.tick)

    async def calm(self) -> None:
        """Wait for long enough that what is on its way arrives."""
        await asyncio.sleep(0.1)


@asynccontextmanager
async def open_dynamodb(
    url: str, *, try_seconds: float = PATIENT_SECONDS / 2
) -> AsyncIterator["DynamoDBClient"]:
    """Open a client."""
    aws = AwsOptions(region=REGION, endpoint_url=url, request_seconds=try_seconds)
    async with open_client("dynamodb", aws) as client:
        yield client


@asynccontextmanager
async def open_table(
    url: str,
    name: str,
    schema: TableSchema,
    clock: Clock,
    *,
    deadline: float = PATIENT_SECONDS,
    try_seconds: float = PATIENT_SECONDS / 2,
) -> AsyncIterator[Table]:
    """Open a table that is there, with a client of its own and no check."""
    options = TableOptions(
        setting="the.table", name=name, deadline=deadline, try_seconds=try_seconds
    )
    async with open_dynamodb(url, try_seconds=try_seconds) as client:
        yield Table(client, schema, options, clock)


@asynccontextmanager
async def open_sessions(
    url: str,
    clock: Clock,
    *,
    name: str | None = None,
    deadline: float = PATIENT_SECONDS,
    try_seconds: float = PATIENT_SECONDS / 2,
) -> AsyncIterator[DynamoDbSessionStore]:
    """Make a table of sessions and give a store over it."""
    name = await make_table(url, SESSIONS, name)
    async with open_table(
        url, name, SESSIONS, clock, deadline=deadline, try_seconds=try_seconds
    ) as table:
        yield DynamoDbSessionStore(DynamoDbSessionOptions(ttl=DAY), table)


@asynccontextmanager
async def open_replies(
    url: str,
    clock: Clock,
    *,
    name: str | None = None,
    deadline: float = PATIENT_SECONDS,
    try_seconds: float = PATIENT_SECONDS / 2,
) -> AsyncIterator[DynamoDbResponseStore]:
    """Make a table of answers and give a store over it."""
    name = await make_table(url, RESPONSES, name)
    async with open_table(
        url, name, RESPONSES, clock, deadline=deadline, try_seconds=try_seconds
    ) as table:
        yield DynamoDbResponseStore(DynamoDbResponseOptions(ttl=DAY), table)


@asynccontextmanager
async def open_connections(
    url: str,
    clock: Clock,
    *,
    name: str | None = None,
    deadline: float = PATIENT_SECONDS,
    try_seconds: float = PATIENT_SECONDS / 2,
) -> AsyncIterator[DynamoDbConnectionStore]:
    """Make a table of connections and give a store over it."""
    name = await make_table(url, CONNECTIONS, name)
    async with open_table(
        url, name, CONNECTIONS, clock, deadline=deadline, try_seconds=try_seconds
    ) as table:
        yield DynamoDbConnectionStore(DynamoDbConnectionOptions(ttl=DAY), table)


async def make_table(url: str, schema: TableSchema, name: str | None = None) -> str:
    """Make a table and give its name; None: one that no other test uses."""
    name = name or new_name()
    async with open_dynamodb(url) as client:
        await create_table(client, name, schema)
    return name


def new_name() -> str:
    """Give the name of a table that no other test uses."""
    return f"table-{next(_numbers)}"


async def items_of(client: "DynamoDBClient", name: str) -> list[dict[str, Any]]:
    """Give everything in a table."""
    pages = client.get_paginator("scan").paginate(TableName=name, ConsistentRead=True)
    return [item async for page in pages for item in page["Items"]]


class _Rig:
    """What the three harnesses share; each store gets a table of its own."""

    schema: TableSchema
    _again: Callable[[], Table]

    def __init__(self, url: str, differences: Mapping[str, str] = _NONE) -> None:
        self.time = MovedTime()
        self.differences = differences
        self._url = url

    @asynccontextmanager
    async def _fresh(self) -> AsyncIterator[Table]:
        """Give a table; whatever is left in it must expire by itself."""
        name = new_name()
        async with open_dynamodb(self._url) as client:
            await create_table(client, name, self.schema)
            options = TableOptions(
                setting="a.table",
                name=name,
                deadline=PATIENT_SECONDS,
                try_seconds=PATIENT_SECONDS / 2,
            )
            self._again = lambda: Table(client, self.schema, options, self.time.clock)
            yield self._again()
            lasting = [item for item in await items_of(client, name) if EXPIRY not in item]
            await client.delete_table(TableName=name)
        if lasting:
            raise AssertionError(f"kept for ever: {lasting}")


class ReplyRig(_Rig):
    """Makes ResponseStores for the suite."""

    schema = RESPONSES

    @asynccontextmanager
    async def open(self, limits: ReplyLimits) -> AsyncIterator[ResponseStore]:
        """Give an empty store."""
        self._options = DynamoDbResponseOptions(
            ttl=limits.ttl_ticks * self.time.tick, max_chunks=limits.max_chunks
        )
        async with self._fresh() as table:
            yield DynamoDbResponseStore(self._options, table)

    @asynccontextmanager
    async def peer(self, store: ResponseStore) -> AsyncIterator[ResponseStore]:
        """Give another store over what was opened last."""
        yield DynamoDbResponseStore(self._options, self._again())


class SessionRig(_Rig):
    """Makes SessionStores for the suite."""

    schema = SESSIONS

    @asynccontextmanager
    async def open(self, limits: SessionLimits) -> AsyncIterator[SessionStore]:
        """Give an empty store."""
        self._options = DynamoDbSessionOptions(
            ttl=limits.ttl_ticks * self.time.tick,
            max_history_turns=limits.max_history,
            max_done_per_session=limits.max_done,
        )
        async with self._fresh() as table:
            yield DynamoDbSessionStore(self._options, table)

    @asynccontextmanager
    async def peer(self, store: SessionStore) -> AsyncIterator[SessionStore]:
        """Give another store over what was opened last."""
        yield DynamoDbSessionStore(self._options, self._again())


class ConnectionRig(_Rig):
    """Makes ConnectionStores for the suite."""

    schema = CONNECTIONS

    @asynccontextmanager
    async def open(self, limits: ConnectionLimits) -> AsyncIterator[ConnectionStore]:
        """Give an empty store."""
        self._options = DynamoDbConnectionOptions(
            ttl=limits.ttl_ticks * self.time.tick,
            held_ttl=limits.held_ttl_ticks * self.time.tick,
            max_held_per_user=limits.max_held,
        )
        async with self._fresh() as table:
            yield DynamoDbConnectionStore(self._options, table)

    @asynccontextmanager
    async def peer(self, store: ConnectionStore) -> AsyncIterator[ConnectionStore]:
        """Give another store over what was opened last."""
        yield DynamoDbConnectionStore(self._options, self._again())
