"""A runner in a process of its own, which claims turns of one session as fast as it can."""

import asyncio
import random
import time
from dataclasses import dataclass

from turnline.errors import FencedError
from turnline.protocol import SessionKey
from turnline.protocol.clock import SystemClock
from turnline.store import New
from turnline.store.dynamodb import SESSIONS, DynamoDbSessionOptions, DynamoDbSessionStore
from turnline.store.dynamodb.store_rig import open_table
from turnline.testing.conformance.stores.ledger_rig import outcome, record

KEY = SessionKey("", "raced")
OPTIONS = DynamoDbSessionOptions(ttl=600)
# Claims are left to lapse now and then, so it is short; a commit beside two racers takes less.
LEASE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Race:
    """What a racer does.

    Attributes:
        table: name of the table of sessions.
        commits: whether turns are committed, which takes transactions; given up otherwise.
        ahead: seconds its clock is ahead.
    """

    url: str
    table: str
    seed: int
    seconds: float
    commits: bool = True
    ahead: float = 0.0


@dataclass(frozen=True, slots=True)
class Held:
    """One claim, in readings of the machine's monotonic clock.

    Attributes:
        begun: when it was surely held.
        ended: when it was surely still held; None if it lapsed or was refused.
    """

    fence: int
    turn: str
    begun: float
    ended: float | None
    committed: bool


class _Ahead(SystemClock):
    def __init__(self, ahead: float) -> None:
        self._ahead = ahead

    def time(self) -> float:
        return super().time() + self._ahead


def race(asked: Race) -> list[Held]:
    """Claim and end, give up or let lapse, as chance has it; gives every claim it had."""
    return asyncio.run(_race(asked))


async def _race(asked: Race) -> list[Held]:
    chance, clock = random.Random(asked.seed), _Ahead(asked.ahead)
    claims: list[Held] = []
    async with open_table(asked.url, asked.table, SESSIONS, clock) as table:
        store = DynamoDbSessionStore(OPTIONS, table)
        end = time.monotonic() + asked.seconds
        while time.monotonic() < end:
            turn = f"t{chance.randrange(100_000)}"
            found = await store.begin_turn(KEY, turn, lease=LEASE_SECONDS)
            if isinstance(found, New):
                claims.append(await _hold(store, found, chance.random(), commits=asked.commits))
    return claims


async def _hold(store: DynamoDbSessionStore, begun: New, fate: float, *, commits: bool) -> Held:
    claim, held_at = begun.claim, time.monotonic()
    if fate > 0.97:
        return Held(claim.fence, claim.request_id, held_at, None, False)
    ended = None
    try:
        if fate > 0.9:
            await store.renew_turn(claim, lease=LEASE_SECONDS)
        before = time.monotonic()
        committed = commits and fate < 0.8
        if committed:
            kept = record(claim.request_id)
            await store.commit_turn(claim, outcome(claim), record=kept, state={"n": claim.fence})
        else:
            # A renewal that holds shows that the claim was never another's.
            await store.renew_turn(claim, lease=LEASE_SECONDS)
            await store.abandon_turn(claim)
        ended = before
    except FencedError:
        committed = False
    return Held(claim.fence, claim.request_id, held_at, ended, committed)
