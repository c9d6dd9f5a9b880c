"""One connection to the server, shared by every call of this process and kept up for ever.

Many calls are on it at a time: what is waiting goes out in one write, replies come back in order.
Knows bytes and replies; what they mean is known by `commands` and `listener`.  Nothing is sent
twice: a command whose reply got lost is its caller's to judge.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from valkey.asyncio.connection import AbstractConnection
from valkey.connection import LibvalkeyRespSerializer
from valkey.exceptions import ResponseError, ValkeyError

from turnline.errors import StoreUnavailableError
from turnline.protocol.clock import Clock
from turnline.telemetry import get_logger

_log = get_logger("store")

Argument: TypeAlias = str | bytes | int
# What the server answered: None, an int, bytes, or a list of these.
Reply: TypeAlias = Any
Connect = Callable[[], AbstractConnection]

FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 1.0
# What a failed connection raises; the library lets some through as they are.
LINK_ERRORS = (ValkeyError, OSError, TimeoutError, StoreUnavailableError)


@dataclass(frozen=True, slots=True)
class _Command:
    packed: Sequence[bytes]
    owed: "asyncio.Future[Reply] | None"

    @property
    def stale(self) -> bool:
        return self.owed is not None and self.owed.done()


class Receiver(Protocol):
    """Who a link works for.  Called from its tasks; must not wait or raise."""

    def up(self) -> None:
        """A new connection stands; nothing of the one before it holds any more."""
        ...

    def down(self, error: Exception) -> None:
        """The connection is gone, and every reply that was owed with it."""
        ...

    def sent(self, owed: "asyncio.Future[Reply]") -> None:
        """A command goes out whose reply is owed to somebody."""
        ...

    def received(self, reply: Reply) -> None:
        """The next reply or message; a ResponseError if the server refused."""
        ...

    def beat(self) -> None:
        """Time to send a sign of life."""
        ...


class Link:
    """Keeps one connection up and carries commands over it.

    `run` is a task of its own, in the owner's TaskGroup; it ends by being cancelled.
    """

    def __init__(
        self,
        connect: Connect,
        receiver: Receiver,
        clock: Clock,
        *,
        name: str,
        deadline: float,
        beat: float,
    ) -> None:
        """Wire it.

        Args:
            connect: makes a connection that is not open yet.
            name: what logs call it.
            deadline: seconds to connect, and of silence after which the server counts as gone.
            beat: seconds between two signs of life.
        """
        self._connect = connect
        self._receiver = receiver
        self._clock = clock
        self._name = name
        self._deadline = deadline
        self._beat = beat
        # The packer of the library's connections for asyncio takes five times as long.
        self._pack = LibvalkeyRespSerializer().pack
        self._waiting: deque[_Command] = deque()
        self._work = asyncio.Event()
        self._cut = asyncio.Event()
        self._heard = 0.0
        self._pause = FIRST_PAUSE_SECONDS
        self._lost_at: float | None = None

    @property
    def backlog(self) -> int:
        """Commands that have not gone out."""
        return len(self._waiting)

    def send(self, *args: Argument, owed: "asyncio.Future[Reply] | None" = None) -> None:
        """Queue a command; it goes out, after those before it, as soon as a connection stands.

        Args:
            owed: to whom the reply is owed; done by then, the command does not go out.
        """
        self._waiting.append(_Command(self._pack(*args), owed))
        self._work.set()

    def drop_stale(self) -> None:
        """Forget the oldest commands as far as nobody waits for their replies any more."""
        while self._waiting and self._waiting[0].stale:
            self._waiting.popleft()

    def cut(self) -> None:
        """Give the connection up and make a new one: the server owes a reply for too long."""
        self._cut.set()

    def forget_waiting(self) -> None:
        """Drop what was queued and did not go out."""
        self._waiting.clear()

    async def run(self) -> None:
        """Connect, carry, and connect again, until cancelled."""
        try:
            while True:
                await self._try()
                await self._clock.sleep_until(self._clock.monotonic() + self._pause)
                self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        finally:
            self._close()

    async def _try(self) -> None:
        connection = self._connect()
        try:
            async with asyncio.timeout(self._deadline):
                await connection.connect()  # type: ignore[no-untyped-call]  # not annotated
                # The kernel accepts for a server that hangs, and a loading one refuses calls.
                await connection.send_command("PING")
                await connection.read_response()
            await self._carry(connection)
        except* LINK_ERRORS as errors:
            self._fail(_first(errors))
        finally:
            await connection.disconnect(nowait=True)

    def _close(self) -> None:
        """Let nobody wait for what will not come."""
        while self._waiting:
            owed = self._waiting.popleft().owed
            if owed is not None:
                self._receiver.sent(owed)
        self._receiver.down(StoreUnavailableError("The store is closed"))

    def _fail(self, error: Exception) -> None:
        if self._lost_at is None:
            self._lost_at = self._clock.monotonic()
            reason = type(error).__name__
            _log.warning("dependency.unavailable", dependency=self._name, reason=reason)
        self._receiver.down(error)

    async def _carry(self, connection: AbstractConnection) -> None:
        self._cut.clear()
        self._heard = self._clock.monotonic()
        if self._lost_at is not None:
            seconds = round(self._heard - self._lost_at, 3)
            _log.info("dependency.recovered", dependency=self._name, seconds=seconds)
            self._lost_at = None
        self._receiver.up()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._write(connection))
            tasks.create_task(self._read(connection))
            tasks.create_task(self._watch())

    async def _write(self, connection: AbstractConnection) -> None:
        while True:
            batch: list[bytes] = []
            while self._waiting:
                command = self._waiting.popleft()
                if command.stale:
                    continue
                if command.owed is not None:
                    self._receiver.sent(command.owed)
                batch.extend(command.packed)
            if batch:
                await connection.send_packed_command(batch, check_health=False)
            self._work.clear()
            if not self._waiting:
                await self._work.wait()

    async def _read(self, connection: AbstractConnection) -> None:
        while True:
            try:
                reply = await connection.read_response()
            except ResponseError as error:
                reply = error
            self._heard = self._clock.monotonic()
            self._pause = FIRST_PAUSE_SECONDS
            self._receiver.received(reply)

    async def _watch(self) -> None:
        """Fail when the connection is given up or silent for too long."""
        while not self._cut.is_set():
            try:
                async with asyncio.timeout(self._beat):
                    await self._cut.wait()
            except TimeoutError:
                silent = self._clock.monotonic() - self._heard
                if silent > self._deadline + self._beat:
                    break
                self._receiver.beat()
        raise StoreUnavailableError("The store did not answer in time")


def _first(errors: BaseExceptionGroup[Exception]) -> Exception:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, Exception) else RuntimeError(str(error))
