"""Sessions and their ledgers on a Valkey or Redis server."""

from dataclasses import dataclass
from math import ceil

from turnline.errors import FencedError, StoreUnavailableError
from turnline.protocol import JsonObject, SessionKey, TurnRecord
from turnline.store.encoding import (
    decode_outcome,
    decode_record,
    encode_outcome,
    encode_record,
)
from turnline.store.json_values import decode_object, encode_json
from turnline.store.ports import Begun, Busy, Cancelled, Claim, Done, New, Outcome, Session
from turnline.store.valkey import session_scripts as scripts
from turnline.store.valkey.commands import Commands, Script
from turnline.store.valkey.keys import SessionNames, session_names
from turnline.store.valkey.link import Argument, Reply
from turnline.store.valkey.listener import Listener

_KEYS = 6
_REFUSALS = {
    b"superseded": "This claim is not the session's newest",
    b"lapsed": "The lease of this claim ran out",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ValkeySessionOptions:
    """Bounds of a ValkeySessionStore.

    Attributes:
        prefix: what names on the server begin with.
        ttl: seconds a session is kept after its last use.
        max_history_turns: turns of history kept per session; the oldest give way.
        max_done_per_session: ended turns remembered per session; the oldest give way, and a
            redelivery of one of those would run again.
    """

    prefix: str
    ttl: float
    max_history_turns: int = 1_000
    max_done_per_session: int = 1_000


class ValkeySessionStore:
    """A SessionStore that any number of processes share."""

    def __init__(
        self, options: ValkeySessionOptions, commands: Commands, listener: Listener
    ) -> None:
        self._options = options
        self._ttl = _milliseconds(options.ttl)
        self._commands = commands
        self._listener = listener

    async def begin_turn(self, key: SessionKey, request_id: str, *, lease: float) -> Begun:
        """Claim a session for a turn; its history comes with the same step."""
        found: list[Reply] = await self._run(
            scripts.BEGIN,
            self._names(key),
            request_id,
            _milliseconds(lease),
            self._options.max_history_turns,
        )
        match found:
            case [b"done", ended]:
                return Done(outcome=decode_outcome(ended))
            case [b"busy", left]:
                return Busy(seconds=left / 1000)
            case _:
                _, fence, attempt, state, records = found
        claim = Claim(key=key, request_id=request_id, fence=int(fence), attempt=attempt)
        session = Session(
            history=tuple(map(decode_record, records)),
            state=decode_object(state) if state else {},
        )
        return New(claim=claim, session=session)

    async def renew_turn(self, claim: Claim, *, lease: float) -> None:
        """Extend a live claim."""
        refused = await self._run(
            scripts.RENEW, self._names(claim.key), claim.fence, _milliseconds(lease)
        )
        _check(refused)

    async def commit_turn(
        self, claim: Claim, outcome: Outcome, *, record: TurnRecord | None, state: JsonObject
    ) -> None:
        """End a turn in one step, whose cost does not grow with the history."""
        refused = await self._run(
            scripts.COMMIT,
            self._names(claim.key),
            claim.request_id,
            claim.fence,
            encode_outcome(outcome),
            encode_json(state, name="state") if state else b"",
            self._options.max_history_turns,
            *([encode_record(record)] if record is not None else ()),
        )
        _check(refused)

    async def abandon_turn(self, claim: Claim) -> None:
        """Give a claim up."""
        await self._run(scripts.ABANDON, self._names(claim.key), claim.fence)

    async def cancel_turn(self, key: SessionKey, request_id: str) -> Cancelled:
        """Ask that a turn stop."""
        names = self._names(key)
        found: bytes = await self._run(scripts.CANCEL, names, request_id, names.cancelled)
        return Cancelled(found.decode())

    async def wait_cancelled(self, claim: Claim) -> None:
        """Wait until the claim's turn is cancelled, through any outage."""
        names = self._names(claim.key)
        with self._listener.watching(names.cancelled) as watch:
            await watch.begin()
            while True:
                seen = watch.version
                if await self._is_cancelled(names, claim):
                    return
                await watch.change(seen)

    async def check(self) -> None:
        """Return if the server answers."""
        await self._commands.call("PING")

    async def _is_cancelled(self, names: SessionNames, claim: Claim) -> bool:
        keys = (names.ledger, names.done)
        try:
            told = await self._commands.run(scripts.TOLD, keys, claim.fence, claim.request_id)
        except StoreUnavailableError:
            return False
        return bool(told)

    async def _run(self, script: Script, names: SessionNames, *args: Argument) -> Reply:
        max_done = self._options.max_done_per_session
        return await self._commands.run(script, names[:_KEYS], self._ttl, max_done, *args)

    def _names(self, key: SessionKey) -> SessionNames:
        return session_names(self._options.prefix, key)


def _check(refused: bytes | None) -> None:
    if refused is not None:
        raise FencedError(_REFUSALS[refused])


def _milliseconds(seconds: float) -> int:
    return max(1, ceil(seconds * 1000))
