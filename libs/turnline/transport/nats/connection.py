"""The connection of a transport: comes back for ever, and says at once when it is away.

Requests have a deadline and fail the moment the connection is lost.  Nothing is buffered for later.
What must exist on each new connection (subscriptions) is declared once, with `listen`.
"""

import asyncio
import itertools
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from nats.aio.msg import Msg

from turnline.errors import ConfigurationError, TransportUnavailableError
from turnline.protocol.clock import Clock
from turnline.telemetry import get_logger
from turnline.transport.nats.client import Callback, Link, connect, unavailable
from turnline.transport.nats.options import ServerOptions

_log = get_logger("transport")

PING_EVERY_SECONDS = 2.5
PING_SECONDS = 5.0
MAX_PAUSE_SECONDS = 2.0
_FIRST_PAUSE_SECONDS = 0.05


@dataclass(slots=True, eq=False)
class Ear:
    """Something to listen to on every connection.

    Attributes:
        end: stops it on the current connection; None while there is none.
    """

    subject: str
    callback: Callback
    end: Callable[[], Awaitable[None]] | None = None


class Connection:
    """One connection at a time to one of several servers; `open`, then `run` in a task."""

    def __init__(self, options: ServerOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._urls = list(options.urls)
        self._link: Link | None = None
        self._inbox = f"_INBOX.{secrets.token_hex(11)}"
        self._numbers = itertools.count(1)
        self._answers: dict[str, asyncio.Future[Msg]] = {}
        self._ears = [Ear(f"{self._inbox}.a.*", self._on_answer)]
        self._when_up: list[Callable[[], None]] = []
        self._closed = False

    @property
    def is_up(self) -> bool:
        """Whether there is a connection, as far as known."""
        return self._link is not None and self._link.is_up

    @property
    def max_payload(self) -> int:
        """Bytes of the largest message the server takes, headers included."""
        return self._live().max_payload

    def new_inbox(self) -> str:
        """Give a subject nobody else listens to."""
        return f"{self._inbox}.i{next(self._numbers)}"

    async def open(self) -> None:
        """Make the first connection, trying each server once.

        Raises:
            TransportUnavailableError: none answers.
            ConfigurationError: one refuses us, in a way that waiting does not mend.
        """
        self._closed = False
        failure: TransportUnavailableError | None = None
        for url in self._urls:
            try:
                await self._use(await connect(url, self._options))
            except TransportUnavailableError as error:
                failure = error
            else:
                return
        raise failure or unavailable("No NATS server is named")

    async def close(self) -> None:
        """Close within a second or two, whatever the server does; for good."""
        self._closed = True
        link, self._link = self._link, None
        self._fail_answers()
        if link is not None:
            await link.close()

    async def run(self) -> None:
        """Watch the connection and make a new one when it is lost; ends when cancelled or closed.

        nats-py may swallow a cancellation, so after `close` it also ends by itself, within seconds.
        """
        # One that was lost before it was looked at, at the start or in a quick row, is made anew.
        while (link := self._link) is not None and not self._closed:
            await self._watch(link)
            began = self._clock.monotonic()
            self._link = None
            self._fail_answers()
            _log.warning("dependency.unavailable", dependency="nats", reason="connection lost")
            await link.close()
            if not await self._come_back():
                return
            _log.info(
                "dependency.recovered",
                dependency="nats",
                seconds=round(self._clock.monotonic() - began, 3),
            )

    def when_up(self, callback: Callable[[], None]) -> None:
        """Have `callback` called after each new connection but the first."""
        self._when_up.append(callback)

    async def listen(self, subject: str, callback: Callback) -> Ear:
        """Listen from now on, on this connection and every later one."""
        ear = Ear(subject, callback)
        self._ears.append(ear)
        try:
            if self.is_up:
                ear.end = await self._live().subscribe(subject, callback)
        except BaseException:
            self._ears.remove(ear)
            raise
        return ear

    async def unlisten(self, ear: Ear) -> None:
        """Stop; returns when what had come was handed over."""
        if ear in self._ears:
            self._ears.remove(ear)
        end, ear.end = ear.end, None
        if end is not None and self.is_up:
            await end()

    async def publish(self, subject: str, payload: bytes = b"", *, reply: str = "") -> None:
        """Write a message; it may be lost.

        Raises:
            TransportUnavailableError: there is no connection.
        """
        await self._live().publish(subject, payload, reply, None)

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        *,
        headers: dict[str, str] | None = None,
        timeout: float | None = None,
    ) -> Msg:
        """Ask and wait for the answer, `request_timeout` or `timeout` seconds.

        Raises:
            TransportUnavailableError: no answer in time, nobody to answer, or no connection; what
                was asked for may have happened.
        """
        link = self._live()
        seconds = self._options.request_timeout if timeout is None else timeout
        async with self._answer(seconds) as (reply, answer):
            await link.publish(subject, payload, reply, headers)
            message = await answer
        if status_of(message) == "503":
            raise unavailable("NATS has nobody to answer: no such stream or consumer, or no leader")
        return message

    async def check(self) -> None:
        """Return if the server answers now.

        Raises:
            TransportUnavailableError: it does not.
        """
        await self._echo(self._live(), min(PING_SECONDS, self._options.request_timeout))

    async def _echo(self, link: Link, seconds: float) -> None:
        """Have the server send us a message of our own: asks no service and no permission."""
        async with self._answer(seconds) as (reply, answer):
            await link.publish(reply, b"", "", None)
            await answer

    @asynccontextmanager
    async def _answer(self, seconds: float) -> AsyncIterator[tuple[str, asyncio.Future[Msg]]]:
        """Give a subject, and what comes on it within so many seconds."""
        name = str(next(self._numbers))
        answer: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()
        self._answers[name] = answer
        try:
            async with asyncio.timeout(seconds):
                yield f"{self._inbox}.a.{name}", answer
        except TimeoutError as error:
            raise unavailable("NATS did not answer in time") from error
        finally:
            del self._answers[name]

    def _live(self) -> Link:
        if self._link is None or not self._link.is_up:
            closed = "closed" if self._closed else "away"
            raise unavailable(f"The connection to NATS is {closed}")
        return self._link

    async def _on_answer(self, message: Msg) -> None:
        answer = self._answers.get(message.subject.rpartition(".")[2])
        if answer is not None and not answer.done():
            answer.set_result(message)

    def _fail_answers(self) -> None:
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(unavailable("The connection to NATS was lost"))

    async def _watch(self, link: Link) -> None:
        """Return when the connection is lost or the server stopped answering."""
        while True:
            try:
                async with asyncio.timeout(PING_EVERY_SECONDS):
                    await link.lost.wait()
                return
            except TimeoutError:
                try:
                    await self._echo(link, PING_SECONDS)
                except TransportUnavailableError:
                    return

    async def _come_back(self) -> bool:
        """Make a new connection, however long it takes; False once closed instead."""
        pause, told = _FIRST_PAUSE_SECONDS, ""
        while not self._closed:
            for url in list(self._urls):
                try:
                    await self._use(await connect(url, self._options))
                except (TransportUnavailableError, ConfigurationError) as error:
                    told = self._tell(error, told)
                else:
                    for callback in self._when_up:
                        callback()
                    return True
            jitter = 0.5 + secrets.randbelow(1000) / 1000
            await self._clock.sleep_until(self._clock.monotonic() + pause * jitter)
            pause = min(pause * 2, MAX_PAUSE_SECONDS)
        return False

    def _tell(self, error: TransportUnavailableError | ConfigurationError, told: str) -> str:
        """Log why there is no connection, unless that was the last thing said."""
        reason = error.faults[0] if isinstance(error, ConfigurationError) else error.message
        if reason != told:
            _log.warning("dependency.unavailable", dependency="nats", reason=reason)
        return reason

    async def _use(self, link: Link) -> None:
        try:
            for ear in self._ears:
                ear.end = await link.subscribe(ear.subject, ear.callback)
        except BaseException:
            await link.close()
            raise
        if self._closed:
            await link.close()
            return
        self._link = link
        self._urls += [url for url in link.known_urls if url not in self._urls]


def status_of(message: Msg) -> str:
    """Give the status the server sent instead of a message, such as `404`; empty: a message."""
    if message.headers is None or message.data:
        return ""
    return message.headers.get("Status", "")
