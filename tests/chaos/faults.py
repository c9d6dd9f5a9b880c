"""Faults at the ports of one runner: it dies at a step, or a step fails before or after its effect.

A runner that died is one whose every further call on a port never returns: whatever its code still
does, clean-up included, changes nothing outside.  That is what SIGKILL looks like from outside, and
it works inside one process.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Self, TypeVar

from turnline.errors import StoreUnavailableError, TransportUnavailableError
from turnline.protocol import Envelope, JsonObject, SessionKey, TurnRecord
from turnline.store import Begun, Cancelled, Claim, Outcome, SessionStore
from turnline.transport import Capabilities, Consumer, DeadLetters, Delivery, Queue, QueueStats

T = TypeVar("T")


class Step(StrEnum):
    """Where a runner touches the world outside."""

    BEGIN = "begin"
    CHUNKS = "chunks"
    COMMIT = "commit"
    PUBLISH = "publish"
    ACK = "ack"
    ABANDON = "abandon"
    RETRY = "retry"
    DEAD_LETTER = "dead_letter"


class Kind(StrEnum):
    """What goes wrong at a step."""

    DIES_BEFORE = "dies before"
    DIES_AFTER = "dies after"
    FAILS_BEFORE = "fails before"
    FAILS_AFTER = "fails after"

    @property
    def dies(self) -> bool:
        """Whether the runner is gone afterwards."""
        return self in (Kind.DIES_BEFORE, Kind.DIES_AFTER)


@dataclass(frozen=True, slots=True)
class Fault:
    """The first time `step` is taken, `kind` happens."""

    step: Step
    kind: Kind


class World:
    """The border between one runner and everything else."""

    def __init__(self, fault: Fault | None = None) -> None:
        self._fault = fault
        self.died = asyncio.Event()
        self.struck = False

    def die(self) -> None:
        """From now on nothing this runner does has an effect."""
        self.died.set()

    async def cross(self, step: Step | None, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call on a port, with the fault if it is due."""
        if self.died.is_set():
            await asyncio.Event().wait()
        kind = self._due(step)
        if kind is Kind.DIES_BEFORE:
            await self._stop()
        if kind is Kind.FAILS_BEFORE:
            raise _error(step)
        result = await call()
        if self.died.is_set() or kind is Kind.DIES_AFTER:
            await self._stop()
        if kind is Kind.FAILS_AFTER:
            raise _error(step)
        return result

    def _due(self, step: Step | None) -> Kind | None:
        if self._fault is None or step is None or self.struck or step is not self._fault.step:
            return None
        self.struck = True
        return self._fault.kind

    async def _stop(self) -> None:
        self.die()
        await asyncio.Event().wait()


_STORE_STEPS = (Step.BEGIN, Step.COMMIT, Step.ABANDON)


def _error(step: Step | None) -> Exception:
    if step in _STORE_STEPS:
        return StoreUnavailableError("injected")
    return TransportUnavailableError("injected")


class FaultySessions:
    """A session store seen through a world."""

    def __init__(self, inner: SessionStore, world: World) -> None:
        self._inner = inner
        self._world = world

    async def begin_turn(self, key: SessionKey, request_id: str, *, lease: float) -> Begun:
        return await self._world.cross(
            Step.BEGIN, lambda: self._inner.begin_turn(key, request_id, lease=lease)
        )

    async def renew_turn(self, claim: Claim, *, lease: float) -> None:
        await self._world.cross(None, lambda: self._inner.renew_turn(claim, lease=lease))

    async def commit_turn(
        self, claim: Claim, outcome: Outcome, *, record: TurnRecord | None, state: JsonObject
    ) -> None:
        await self._world.cross(
            Step.COMMIT,
            lambda: self._inner.commit_turn(claim, outcome, record=record, state=state),
        )

    async def abandon_turn(self, claim: Claim) -> None:
        await self._world.cross(Step.ABANDON, lambda: self._inner.abandon_turn(claim))

    async def cancel_turn(self, key: SessionKey, request_id: str) -> Cancelled:
        return await self._inner.cancel_turn(key, request_id)

    async def wait_cancelled(self, claim: Claim) -> None:
        await self._world.cross(None, lambda: self._inner.wait_cancelled(claim))


class FaultyQueue:
    """A queue seen through a world."""

    def __init__(self, inner: Queue, world: World) -> None:
        self._inner = inner
        self._world = world

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities

    @property
    def dead_letters(self) -> DeadLetters:
        return self._inner.dead_letters

    async def send(self, envelope: Envelope) -> bool:
        step = Step.CHUNKS if envelope.payload is None else Step.PUBLISH
        return await self._world.cross(step, lambda: self._inner.send(envelope))

    def consumer(self) -> Consumer:
        return _FaultyConsumer(self._inner.consumer(), self._world)

    async def stats(self) -> QueueStats:
        return await self._inner.stats()


class _FaultyConsumer:
    def __init__(self, inner: Consumer, world: World) -> None:
        self._inner = inner
        self._world = world

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._inner.__aexit__(*exc_info)

    async def receive(self) -> Delivery:
        if self._world.died.is_set():
            await asyncio.Event().wait()
        return _FaultyDelivery(await self._inner.receive(), self._world)


class _FaultyDelivery:
    def __init__(self, inner: Delivery, world: World) -> None:
        self._inner = inner
        self._world = world

    @property
    def envelope(self) -> Envelope:
        return self._inner.envelope

    @property
    def attempt(self) -> int:
        return self._inner.attempt

    async def ack(self) -> None:
        await self._world.cross(Step.ACK, self._inner.ack)

    async def retry(self, after: float) -> None:
        await self._world.cross(Step.RETRY, lambda: self._inner.retry(after))

    async def release(self) -> None:
        await self._world.cross(None, self._inner.release)

    async def dead_letter(self, reason: str) -> None:
        await self._world.cross(Step.DEAD_LETTER, lambda: self._inner.dead_letter(reason))

    async def renew(self) -> None:
        await self._world.cross(None, self._inner.renew)
