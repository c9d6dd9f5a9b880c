"""What an adapter provides so that the suites can be run over its stores.

The suites know the ports and this page, nothing else: the same cases run over a dictionary and over
a server on the network.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pytest

from turnline.store import ConnectionStore, ResponseStore, SessionStore

T = TypeVar("T")
StoreT = TypeVar("StoreT")
StoreT_co = TypeVar("StoreT_co", covariant=True)
StoreT_contra = TypeVar("StoreT_contra", contravariant=True)
LimitsT_contra = TypeVar("LimitsT_contra", contravariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyLimits:
    """How a case wants its ResponseStore made.

    Attributes:
        ttl_ticks: ticks a turn is kept after its last write.
        max_replies: finished turns kept.
        max_chunks: chunks kept of one turn.
    """

    ttl_ticks: float = 10_000.0
    max_replies: int = 10_000
    max_chunks: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """How a case wants its SessionStore made.

    Attributes:
        ttl_ticks: ticks a session is kept after its last use.
        max_history: turns of history kept per session.
        max_done: ended turns remembered per session.
    """

    ttl_ticks: float = 10_000.0
    max_history: int = 1_000
    max_done: int = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """How a case wants its ConnectionStore made.

    Attributes:
        ttl_ticks: ticks a connection is kept after it was last added.
        held_ttl_ticks: ticks a frame is held.
        max_held: frames held per user.
    """

    ttl_ticks: float = 10_000.0
    held_ttl_ticks: float = 10_000.0
    max_held: int = 100


class StoreTime(Protocol):
    """The time the stores live in: the real one, or one moved by hand."""

    @property
    def tick(self) -> float:
        """Seconds of a tick, the unit of all times in the cases.

        With real time: at least twenty times what one operation takes, so that nothing counted in
        ticks runs out by itself.
        """
        ...

    @property
    def patience(self) -> float:
        """Real seconds to wait for what should come at once; generous."""
        ...

    async def pass_ticks(self, ticks: float) -> None:
        """Return when the store has lived `ticks` longer."""
        ...

    async def calm(self) -> None:
        """Return when all that can happen without waiting has happened.

        With a server this is a short wait; it decides how sure a case can be that *nothing* comes.
        """
        ...


class Harness(Protocol[StoreT, LimitsT_contra]):
    """Makes stores for cases."""

    @property
    def time(self) -> StoreTime:
        """The time its stores live in."""
        ...

    @property
    def differences(self) -> Mapping[str, str]:
        """Name of a case its stores do not meet -> the reason.  Such a case must fail."""
        ...

    def open(self, limits: LimitsT_contra) -> AbstractAsyncContextManager[StoreT]:
        """Give an empty store; leaving removes what it kept."""
        ...

    def peer(self, store: StoreT) -> AbstractAsyncContextManager[StoreT]:
        """Give what another process would see: another store over the same data.

        A store that lives in one process gives itself.
        """
        ...


ReplyHarness = Harness[ResponseStore, ReplyLimits]
SessionHarness = Harness[SessionStore, SessionLimits]
ConnectionHarness = Harness[ConnectionStore, ConnectionLimits]


def expect_declared_differences(
    request: pytest.FixtureRequest, differences: Mapping[str, str]
) -> None:
    """Turn the running case into one that must fail, if the adapter says so."""
    reason = differences.get(request.node.name.partition("[")[0])
    if reason is not None:
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))


async def soon(time: StoreTime, work: Awaitable[T]) -> T:
    """Await what should be there at once, or fail."""
    async with asyncio.timeout(time.patience):
        return await work


@asynccontextmanager
async def meanwhile(time: StoreTime, work: Awaitable[T]) -> AsyncIterator["asyncio.Task[T]"]:
    """Have a task wait for `work` during the block, which begins when it waits.

    Cancelled at the end of the block if it still waits.
    """

    async def run() -> T:
        return await work

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(run())
        await time.calm()
        try:
            yield task
        finally:
            task.cancel()
