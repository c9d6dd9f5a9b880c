"""One session's ledger as a plain state machine: no clock, no calls.

The ledger is one item, at the sort key `ledger`.  What it speaks of lies beside it, in items named
by the life of the session (`born`): a record of the history by its number, the end of a turn by its
request id and numbered too.  Only the newest of each count, as many as the options say; what the
ledger does not count does not exist, and is left to its expiry.

A claim is live while it is held and its lease has not run out.  Times are milliseconds since the
epoch by the caller's clock: DynamoDB has none to offer.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from turnline.errors import FencedError
from turnline.store.dynamodb.items import EXPIRY, Item, Key, n, number, text

LEDGER = "ledger"
# Turns that were claimed and have not ended, of which the claims are counted.
MAX_TRIES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """A session, its history and state apart.

    Attributes:
        born: names this life of the session; another after it expired.
        fence: the newest given out; 0 for none.
        holder: request id of the turn that is claimed; None while the session is free.
        claim: mark of who claimed it.
        until: when its lease ends.
        told: whether its cancellation was asked for.
        turns: records of the history written so far.
        ends: ends of turns written so far.
        state_hash: tells states apart; empty for an empty state.
        tries: claims of turns that have not ended, (count, fence of the last) by request id.
    """

    born: str
    fence: int = 0
    holder: str | None = None
    claim: str = ""
    until: int = 0
    told: bool = False
    turns: int = 0
    ends: int = 0
    state_hash: str = ""
    tries: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def held(self) -> int | None:
        """Fence of the claim that is held; the newest is, if any."""
        return self.fence if self.holder is not None else None

    def live(self, now: int) -> bool:
        """Whether a runner holds the session."""
        return self.holder is not None and self.until > now

    def attempts(self, request_id: str) -> int:
        """Claims so far of a turn that has not ended."""
        return self.tries.get(request_id, (0, 0))[0]

    def claimed(self, request_id: str, *, mark: str, micros: int, until: int) -> "Ledger":
        """Claim the free session; the fence is above every one before, of earlier lives too.

        Args:
            micros: microseconds since the epoch; no session is claimed more often than that.
        """
        fence = max(self.fence + 1, micros)
        tries = dict(self.tries) | {request_id: (self.attempts(request_id) + 1, fence)}
        if len(tries) > MAX_TRIES:
            del tries[min(tries, key=lambda each: tries[each][1])]
        return replace(
            self, fence=fence, holder=request_id, claim=mark, until=until, told=False, tries=tries
        )

    def check(self, fence: int, now: int) -> None:
        """Raise FencedError unless the claim of that fence is held and its lease runs."""
        if self.held != fence:
            raise FencedError("This claim is not the session's newest")
        if self.until <= now:
            raise FencedError("The lease of this claim ran out")

    def free(self) -> "Ledger":
        """Let the claim go."""
        return replace(self, holder=None, claim="", until=0, told=False)

    def ended(self, request_id: str) -> "Ledger":
        """Count the end of a turn."""
        tries = {name: each for name, each in self.tries.items() if name != request_id}
        return replace(self, ends=self.ends + 1, tries=tries)

    def recorded(self) -> "Ledger":
        """Count a record of the history."""
        return replace(self, turns=self.turns + 1)

    def with_state(self, state: bytes) -> "Ledger":
        """Note a state; an empty one is written nowhere."""
        return replace(self, state_hash=hash_of(state))


def hash_of(state: bytes) -> str:
    """Tell states apart."""
    return hashlib.sha256(state).hexdigest() if state else ""


def ledger_key(token: str) -> Key:
    """Name the ledger of a session."""
    return Key(token, LEDGER)


def turn_name(born: str, number_: int) -> str:
    """Name a record of the history; sorts by its number."""
    return f"turn#{born}#{number_:016d}"


def end_name(born: str, request_id: str) -> str:
    """Name the end of a turn."""
    return f"end#{born}#{request_id}"


def state_name(born: str) -> str:
    """Name the state: one place, written over by each commit that changes it."""
    return f"state#{born}"


def to_item(ledger: Ledger, *, writer: str, expires: int) -> Item:
    """Write a ledger, its key apart."""
    item: Item = {
        "born": {"S": ledger.born},
        "fence": n(ledger.fence),
        "turns": n(ledger.turns),
        "ends": n(ledger.ends),
        "writer": {"S": writer},
        EXPIRY: n(expires),
    }
    if ledger.holder is not None:
        item |= {
            "holder": {"S": ledger.holder},
            "claim": {"S": ledger.claim},
            "until": n(ledger.until),
            "told": {"BOOL": ledger.told},
        }
    if ledger.state_hash:
        item["state_hash"] = {"S": ledger.state_hash}
    if ledger.tries:
        tries = {name: {"L": [n(count), n(fence)]} for name, (count, fence) in ledger.tries.items()}
        item["tries"] = {"M": tries}
    return item


def from_item(item: Mapping[str, Any]) -> Ledger:
    """Read what `to_item` wrote."""
    tries: Mapping[str, Any] = item.get("tries", {}).get("M", {})
    return Ledger(
        born=text(item, "born") or "",
        fence=number(item, "fence"),
        holder=text(item, "holder"),
        claim=text(item, "claim") or "",
        until=number(item, "until"),
        told=bool(item.get("told", {}).get("BOOL", False)),
        turns=number(item, "turns"),
        ends=number(item, "ends"),
        state_hash=text(item, "state_hash") or "",
        tries={
            name: (int(pair["L"][0]["N"]), int(pair["L"][1]["N"])) for name, pair in tries.items()
        },
    )
