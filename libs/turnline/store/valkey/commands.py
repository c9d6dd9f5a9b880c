"""Calls with replies, each with a deadline, and the one place that translates the client's errors.

A script is called by its digest; a server that does not know it (new, restarted, flushed) is given
its text.  No call is repeated after it may have run.
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from valkey.exceptions import (
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
)

from turnline.errors import InternalError, StoreUnavailableError
from turnline.protocol.clock import Clock
from turnline.protocol.deadline import TimeLimit
from turnline.store.valkey.link import Argument, Connect, Link, Reply

MAX_CALLS = 10_000
BEAT_SECONDS = 1.0

# Refusals that pass when the server or its operator has done something.
_PASSING = (NoPermissionError, OutOfMemoryError, ReadOnlyError)
_PASSING_CODES = (
    "ASK ",
    "BUSY ",
    "CLUSTERDOWN ",
    "MASTERDOWN ",
    "MISCONF ",
    "MOVED ",
    "NOREPLICAS ",
    "TRYAGAIN ",
)


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script: one atomic step on the server."""

    source: str
    digest: str

    @classmethod
    def of(cls, *parts: str) -> "Script":
        """Join the parts of a script's text; the first begins with its `#!lua` line."""
        source = "".join(parts)
        return cls(source, hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest())


class Commands:
    """Calls the server; every method raises StoreUnavailableError when no answer comes in time."""

    def __init__(self, connect: Connect, clock: Clock, *, name: str, deadline: float) -> None:
        """Wire it; `link.run` must run.

        Args:
            deadline: seconds a call may take, waiting for a lost connection included.
        """
        self._limit = TimeLimit(deadline)
        self._owed: deque[asyncio.Future[Reply]] = deque()
        self._error: Exception | None = None
        self._connected = False
        self.link = Link(connect, self, clock, name=name, deadline=deadline, beat=BEAT_SECONDS)

    @property
    def connected(self) -> bool:
        """Whether a connection stands on which the server has answered."""
        return self._connected

    async def run(self, script: Script, keys: Sequence[bytes], *args: Argument) -> Reply:
        """Run a script; its keys all carry one hash tag."""
        try:
            return await self._call("EVALSHA", script.digest, len(keys), *keys, *args)
        except NoScriptError:
            try:
                return await self._call("EVAL", script.source, len(keys), *keys, *args)
            except ResponseError as error:
                raise _translated(error) from error
        except ResponseError as error:
            raise _translated(error) from error

    async def call(self, *args: Argument) -> Reply:
        """Call a plain command."""
        try:
            return await self._call(*args)
        except ResponseError as error:
            raise _translated(error) from error

    async def _call(self, *args: Argument) -> Reply:
        if len(self._owed) + self.link.backlog >= MAX_CALLS:
            raise StoreUnavailableError("Too many calls wait for the store")
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.link.send(*args, owed=future)
        self._limit.add(future)
        try:
            return await future
        except TimeoutError as error:
            # Whatever the connection owes is late too.
            if self._owed:
                self.link.cut()
            self.link.drop_stale()
            raise StoreUnavailableError("The store did not answer in time") from (
                self._error or error
            )

    # --- what the link reports ------------------------------------------------------------------

    def up(self) -> None:
        """Nothing is owed on a new connection."""
        self._error = None
        self._connected = True

    def down(self, error: Exception) -> None:
        """Tell whoever waits for a reply that none will come."""
        self._error = error
        self._connected = False
        while self._owed:
            future = self._owed.popleft()
            if not future.done():
                failure = StoreUnavailableError("The connection to the store was lost")
                failure.__cause__ = error
                future.set_exception(failure)

    def sent(self, owed: "asyncio.Future[Reply]") -> None:
        """Replies come in the order of the commands."""
        self._owed.append(owed)

    def received(self, reply: Reply) -> None:
        """Hand a reply to whom it is owed; who has gone does not mind."""
        future = self._owed.popleft()
        if future.done():
            return
        if isinstance(reply, ResponseError):
            future.set_exception(reply)
        else:
            future.set_result(reply)

    def beat(self) -> None:
        """Ask for a sign of life unless a reply is owed anyway."""
        if not self._owed:
            future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
            future.add_done_callback(_read_by_nobody)
            self.link.send("PING", owed=future)


def _read_by_nobody(future: "asyncio.Future[Reply]") -> None:
    """Take note of a failure, or the loop complains that none did."""
    if not future.cancelled():
        future.exception()


def will_pass(error: ResponseError) -> bool:
    """Whether a refusal is about the server's state and not about the call."""
    return isinstance(error, _PASSING) or str(error).startswith(_PASSING_CODES)


def _translated(error: ResponseError) -> StoreUnavailableError | InternalError:
    if will_pass(error):
        return StoreUnavailableError("The store refuses calls for now")
    return InternalError("The store refused a call as wrong")
