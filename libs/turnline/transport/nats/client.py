"""One connection to one server, over nats-py, and its errors in our words.

nats-py's own reconnecting is off (`turnline.transport.nats.connection` does it): it sends what was
published during an outage once it is back, and an ack or hand-back that late would settle a
delivery that is somebody else's by then.  It also gives up after a while, and for good.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import nats.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from typing_extensions import override

from turnline.errors import ConfigurationError, PayloadTooLargeError, TransportUnavailableError
from turnline.transport.nats.credentials import credentials_of
from turnline.transport.nats.options import ServerOptions

Callback = Callable[[Msg], Awaitable[None]]

CONNECT_SECONDS = 4.0
_CLOSE_SECONDS = 1.0
# Faults that waiting does not mend, by what the server or OpenSSL says.
_REFUSALS = {
    "authorization violation": "the server refuses these credentials",
    "authorization failed": "the server refuses these credentials",
    "authentication": "the server refuses these credentials",
    "user authentication expired": "these credentials have expired",
}

NATS_ERRORS = (nats.errors.Error, OSError, asyncio.IncompleteReadError)


class _TlsMissingError(nats.errors.Error):
    pass


class _CertificateMissingError(nats.errors.Error):
    pass


class _Client(Client):
    """nats-py's client, that sends no credentials in the clear where TLS was asked for."""

    wants_tls = False
    has_certificate = False

    @override
    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        # Comes before CONNECT, which holds the password.
        if initial_connection and self.wants_tls and not info.get("tls_required"):
            raise _TlsMissingError
        # Without one the server ends the connection, and does not say why.
        if initial_connection and info.get("tls_verify") and not self.has_certificate:
            raise _CertificateMissingError
        await super()._process_info(info, initial_connection)

    @override
    async def _process_pong(self) -> None:
        # A pong whose waiter gave up would end nats-py's reading, and nobody would hear of it.
        if self._pongs and self._pongs[0].done():
            self._pongs[0] = asyncio.get_running_loop().create_future()
        await super()._process_pong()

    @property
    def is_alive(self) -> bool:
        """Whether it reads and writes; after a fault of its own it says connected and does not."""
        tasks = (self._reading_task, self._flusher_task)
        return self.is_connected and not any(task is None or task.done() for task in tasks)

    def abort(self) -> None:
        """Drop the socket without a word, even if what was written can't be sent."""
        writer = getattr(self._transport, "_io_writer", None)
        if writer is not None:
            writer.transport.abort()


class Link:
    """A connection that was made and, once lost, stays lost."""

    def __init__(self, client: _Client, lost: asyncio.Event) -> None:
        self._client = client
        self.lost = lost

    @property
    def max_payload(self) -> int:
        """Bytes of the largest message, headers included."""
        return self._client.max_payload

    @property
    def known_urls(self) -> tuple[str, ...]:
        """Servers of the cluster that this one told of."""
        return tuple(url.geturl() for url in self._client.discovered_servers)

    @property
    def is_up(self) -> bool:
        """Whether the socket is open, as far as known."""
        return self._client.is_alive and not self.lost.is_set()

    async def publish(
        self, subject: str, payload: bytes, reply: str, headers: dict[str, str] | None
    ) -> None:
        """Write a message; it may be lost.

        Raises:
            TransportUnavailableError: there is no connection.
            PayloadTooLargeError: the server would close the connection over it.
        """
        size = len(payload)
        if headers:
            # `NATS/1.0`, and `: ` and a line end per header.
            size += 12 + sum(len(name) + len(text.encode()) + 4 for name, text in headers.items())
        if size > self.max_payload:
            raise PayloadTooLargeError(
                f"The message is larger than {self.max_payload} bytes", limit_bytes=self.max_payload
            )
        try:
            await self._client.publish(subject, payload, reply=reply, headers=headers)
        except NATS_ERRORS as error:
            raise unavailable(f"NATS took no message: {_words(error)}") from error

    async def subscribe(self, subject: str, callback: Callback) -> Callable[[], Awaitable[None]]:
        """Have `callback` called with what comes; give a function that ends it.

        That function returns when the server sends no more and what came was handed over.
        """
        try:
            subscription = await self._client.subscribe(
                subject, cb=callback, pending_msgs_limit=0, pending_bytes_limit=0
            )
        except NATS_ERRORS as error:
            raise unavailable(f"NATS took no subscription: {_words(error)}") from error

        async def end() -> None:
            with suppress(*NATS_ERRORS, TimeoutError):
                await subscription.drain()  # type: ignore[no-untyped-call] # nats-py's gap

        return end

    async def close(self) -> None:
        """Close, or drop the socket if that takes longer than a second."""
        self.lost.set()
        await _close(self._client)


async def connect(url: str, options: ServerOptions) -> Link:
    """Connect to one server.

    Raises:
        TransportUnavailableError: it does not answer now.
        ConfigurationError: it never will: wrong credentials, wrong TLS.
    """
    client = _Client()
    client.wants_tls = options.wants_tls
    client.has_certificate = options.tls_cert_file is not None
    lost = asyncio.Event()
    last: list[Exception] = []

    async def on_error(error: Exception) -> None:
        last.append(error)

    async def on_closed() -> None:
        lost.set()

    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await client.connect(
                servers=[url],
                name="turnline",
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=int(CONNECT_SECONDS),
                # No limit: at a limit it waits for the socket and swallows cancellation.  What
                # may wait is bounded by those who wait for its answer.
                pending_size=0,
                error_cb=on_error,
                closed_cb=on_closed,
                **credentials_of(options),
            )
    except (*NATS_ERRORS, ssl.SSLError, TimeoutError, ValueError) as error:
        client.abort()
        raise _translated([error, *last], url) from error
    except BaseException:
        client.abort()
        raise
    return Link(client, lost)


def unavailable(message: str) -> TransportUnavailableError:
    """Make the error for a server that does not do its part now."""
    return TransportUnavailableError(message, retry_after=1.0)


def place_of(url: str) -> str:
    """Give the part of a URL that holds no secret."""
    scheme, _, rest = url.rpartition("://")
    return f"{scheme or 'nats'}://{rest.rpartition('@')[2]}"


def _translated(errors: list[Any], url: str) -> ConfigurationError | TransportUnavailableError:
    where = place_of(url)
    for error in errors:
        text = str(error).lower()
        reason = next((why for words, why in _REFUSALS.items() if words in text), "")
        if reason:
            return ConfigurationError(
                [f"execution.queues.nats.url: {where}: {reason}; give those of a user it knows"]
            )
        if isinstance(error, ssl.SSLCertVerificationError):
            return ConfigurationError(
                [
                    f"execution.queues.nats.tls_ca_file: {where}: its certificate is not trusted "
                    f"({error.verify_message}); name the authority that signed it"
                ]
            )
        if isinstance(error, _TlsMissingError):
            return ConfigurationError(
                [
                    f"execution.queues.nats.url: {where} offers no TLS; turn it on there, or "
                    "write nats:// and name no tls_ files"
                ]
            )
        if isinstance(error, _CertificateMissingError):
            return ConfigurationError(
                [f"execution.queues.nats.tls_cert_file: {where} asks for one; name it"]
            )
    cause = next((error for error in errors if str(error)), errors[0])
    return unavailable(f"NATS at {where} can't be reached: {_words(cause)}")


def _words(error: BaseException) -> str:
    return (str(error) or type(error).__name__).removeprefix("nats: ")[:200]


async def _close(client: _Client) -> None:
    try:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await client.close()
    except (*NATS_ERRORS, TimeoutError):
        pass
    finally:
        client.abort()
