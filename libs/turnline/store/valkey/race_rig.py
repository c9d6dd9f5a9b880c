"""A runner in a process of its own, which claims turns of one session as fast as it can."""

import asyncio
import random
import time
from dataclasses import dataclass

from turnline.errors import FencedError
from turnline.protocol import SessionKey
from turnline.store import New
from turnline.store.valkey import ValkeySessionOptions
from turnline.store.valkey.server import ServerOptions
from turnline.store.valkey.store_rig import open_sessions
from turnline.testing.conformance.stores.ledger_rig import outcome, record

KEY = SessionKey("", "raced")
OPTIONS = ValkeySessionOptions(prefix="race:", ttl=60)
LEASE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Held:
    """One claim, in readings of the machine's monotonic clock.

    Attributes:
        begun: when it was surely held.
        ended: when it was surely still held; None if it was given up or lapsed.
    """

    fence: int
    turn: str
    begun: float
    ended: float | None


def race(url: str, seed: int, seconds: float) -> list[Held]:
    """Claim and commit, give up or let lapse, as chance has it; gives every claim it had."""
    return asyncio.run(_race(url, random.Random(seed), seconds))


async def _race(url: str, chance: random.Random, seconds: float) -> list[Held]:
    server = ServerOptions(setting="session.valkey.url", url=url)
    async with open_sessions(server, OPTIONS) as store:
        claims: list[Held] = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            turn = f"t{chance.randrange(100_000)}"
            found = await store.begin_turn(KEY, turn, lease=LEASE_SECONDS)
            if not isinstance(found, New):
                continue
            begun, ended = time.monotonic(), None
            fate = chance.random()
            if fate < 0.8:
                before = time.monotonic()
                try:
                    await store.commit_turn(
                        found.claim, outcome(found.claim), record=record(turn), state={}
                    )
                    ended = before
                except FencedError:
                    pass
            elif fate < 0.95:
                await store.abandon_turn(found.claim)
            claims.append(Held(found.claim.fence, turn, begun, ended))
        return claims
