"""What a store is: replies and their streams, sessions with their ledger, connections.

Written for whoever implements one; a store is whatever passes the conformance suites in
`turnline.testing.conformance`.  All values are plain and immutable; nothing here is pickled.
Every method raises StoreUnavailableError when the backing service does not answer in time.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from turnline.protocol import (
    ChatReply,
    Chunk,
    Failure,
    JsonObject,
    Position,
    ReplyKey,
    SessionKey,
    TurnRecord,
)

# --- replies and their streams ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReply:
    """The end of a turn, as kept for its caller.

    Attributes:
        status_code: HTTP status; 0 never occurs here (missing is stored as 200).
        payload: the reply, or why there is none.
        attempt: the attempt that made it; 0 when it failed before any attempt.
        chunk_count: chunks its attempt streamed; 0 for a turn that did not stream.
    """

    request_id: str
    session_id: str
    status_code: int
    payload: ChatReply | Failure
    attempt: int = 0
    chunk_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingReply:
    """A turn that was admitted and has no end yet."""

    request_id: str
    session_id: str


class Opened(StrEnum):
    """What `ResponseStore.open` found."""

    NEW = "new"
    KNOWN = "known"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Chunks `first`..`last` (indices, inclusive) of `attempt` are no longer kept."""

    attempt: int
    first: int
    last: int


StreamItem = Chunk | Gap | StoredReply


class ResponseStore(Protocol):
    """Replies by (scope, request id), with the chunks that led to them.

    *   Reading destroys nothing: a reply stays until its TTL.
    *   Waiting is notified: a waiter learns of a reply or chunk when it is written, and one written
        before the wait began is returned at once.
    *   The first end wins, with one exception: a reply replaces a failure (a redriven turn).
    *   Chunks of a lower attempt than one already seen, with an index not above the last stored, or
        after the end are dropped; a higher attempt (of a chunk or of the end) voids the chunks
        before it.
    *   Bounded: finished replies give way oldest first, never pending ones with a waiter; of one
        turn's chunks the oldest give way.
    """

    async def open(self, key: ReplyKey, *, session_id: str, fingerprint: str) -> Opened:
        """Record that a turn is admitted.

        NEW: it was unknown; the caller now enqueues it.  KNOWN: same `fingerprint` (hash of the
        body, session included): attach.  DIFFERENT: another body used this id.  A turn known only
        by its chunks or its end is KNOWN and takes the fingerprint.
        """
        ...

    async def discard(self, key: ReplyKey) -> None:
        """Forget a pending turn whose enqueueing failed; a finished one stays.

        Who waits for it or reads it waits on, as for an unknown key.
        """
        ...

    async def put(self, key: ReplyKey, reply: StoredReply) -> None:
        """Store the end of a turn and wake its waiters; see "the first end wins" above."""
        ...

    async def get(self, key: ReplyKey) -> StoredReply | PendingReply | None:
        """Read; None for an unknown or expired key."""
        ...

    async def wait(self, key: ReplyKey, timeout: float) -> StoredReply | None:
        """Wait up to `timeout` seconds for the end; None if there is none by then."""
        ...

    async def append(self, key: ReplyKey, *, session_id: str, chunks: Sequence[Chunk]) -> None:
        """Add chunks of one attempt in index order and wake readers."""
        ...

    def stream(self, key: ReplyKey, after: Position) -> AsyncIterator[StreamItem]:
        """Read the stream behind `after`, waiting for more; a StoredReply is the last item.

        Any number of readers may read at once, each from its own position.  Where chunks the
        reader has not seen are gone, a Gap comes in their place.  When `after` lies in an attempt
        that has been voided, the new attempt is read from its first chunk; when it lies ahead of
        what is stored, reading begins behind it.  An unknown key gives nothing until there is
        something; bound the wait for each item from outside.  A reply that is evicted or expires
        while it is read is read to its end, or the iterator just ends.
        """
        ...


# --- sessions and their ledger ------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What the agent is given of a session.

    Attributes:
        history: finished turns, oldest first, at most the configured number of the latest.
        state: the agent's own JSON object; empty at first.
    """

    history: Sequence[TurnRecord] = ()
    state: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a turn ended, as the ledger keeps it, enough to publish it again."""

    payload: ChatReply | Failure
    status_code: int
    attempt: int
    fence: int
    chunk_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The right to run one turn of a session, until the lease ends or a newer claim exists.

    Attributes:
        fence: grows with each claim of the session; everything older is refused.
        attempt: which claim of this turn it is, from 1; an abandoned or expired claim counts.
            Numbers the turn's chunks, so it may differ from the delivery's attempt, which a
            hand-back does not spend.
    """

    key: SessionKey
    request_id: str
    fence: int
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class New:
    """`begin_turn`: run it."""

    claim: Claim
    session: Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """`begin_turn`: it ended before; publish this again and do not run it."""

    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """`begin_turn`: another claim of this session is live for up to `seconds` more."""

    seconds: float


Begun = New | Done | Busy


class Cancelled(StrEnum):
    """What `cancel_turn` found."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"


class SessionStore(Protocol):
    """Sessions: history, state, and the ledger of which turns are claimed or done.

    The ledger is what makes "run once" true (ARCHITECTURE, guarantee 2): history, state, done
    mark and outcome change in one atomic step, refused unless the claim is the session's newest
    and its lease is live.  Done marks outlive any redelivery; they are bounded per session.
    """

    async def begin_turn(self, key: SessionKey, request_id: str, *, lease: float) -> Begun:
        """Claim a session for a turn for `lease` seconds.

        A live claim of the same turn by a dead runner is Busy until its lease ends.  A turn
        cancelled before it began is Done with a `turn_cancelled` failure.
        """
        ...

    async def renew_turn(self, claim: Claim, *, lease: float) -> None:
        """Let the lease end `lease` seconds from now.

        Raises:
            FencedError: the claim is no longer the session's newest, or its lease ran out.
        """
        ...

    async def commit_turn(
        self, claim: Claim, outcome: Outcome, *, record: TurnRecord | None, state: JsonObject
    ) -> None:
        """End a turn, all or nothing: append `record`, set `state`, mark it done.

        With None for `record` the history stays as it was.

        The claim ends with it.  Committing the same claim again does nothing, whenever.  What is
        stored shares nothing with the arguments, nor does what `begin_turn` gives share with it.

        Raises:
            FencedError: as for `renew_turn`; nothing was written.
            ValueError: `state`, the record's items or the reply's `extra` are not JSON (see
                `encode_json`); nothing was written and the claim is still live.
        """
        ...

    async def abandon_turn(self, claim: Claim) -> None:
        """Give a claim up so that the next `begin_turn` need not wait; no-op if it is not live."""
        ...

    async def cancel_turn(self, key: SessionKey, request_id: str) -> Cancelled:
        """Ask that a turn stop.

        QUEUED: nobody runs it (it had not begun, or waits for another attempt) and nobody will:
        its outcome is the `turn_cancelled` failure.  RUNNING: its runner is told; whether it
        finishes first is open, but it is not tried again.  DONE: it had ended, cancelled ones
        included.
        """
        ...

    async def wait_cancelled(self, claim: Claim) -> None:
        """Return when cancellation of this running turn is asked for; otherwise wait for ever."""
        ...


# --- connections ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """One client socket and where it is held.

    Attributes:
        endpoint: push address of the pod that holds it, or `local` in a single process.
    """

    user_id: str
    connection_id: str
    endpoint: str


LOCAL_ENDPOINT = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What is held for a user.

    Attributes:
        frames: oldest first; empty: nothing is held.
        through: names the newest of them, for `drop_held`; empty: nothing is held.
    """

    frames: Sequence[dict[str, Any]]
    through: str


class ConnectionStore(Protocol):
    """Which sockets a user has open, and frames held for a user who has none.

    Mappings expire on their own unless refreshed, so a dead pod's sockets vanish.  Held frames
    are bounded per user (oldest give way) and kept for their TTL.  They are read first and dropped
    once a socket has them, so that no crash in between loses one; what is read twice is known by
    its turn or its `push_id`.
    """

    async def add(self, connection: Connection) -> None:
        """Record a socket, or refresh its expiry."""
        ...

    async def remove(self, user_id: str, connection_id: str) -> None:
        """Forget a socket; no-op if unknown."""
        ...

    async def connections_of(self, user_id: str) -> Sequence[Connection]:
        """Give the live sockets of a user, oldest first."""
        ...

    async def hold(self, user_id: str, frame: dict[str, Any]) -> None:
        """Keep a frame for a user who has no socket now."""
        ...

    async def held(self, user_id: str) -> Held:
        """Give the held frames."""
        ...

    async def drop_held(self, user_id: str, through: str) -> None:
        """Forget the held frames up to one that was given; those that came after it stay."""
        ...
