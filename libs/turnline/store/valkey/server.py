"""Reaching the server a setting names: its URL, the checks at start-up, what runs until the end.

A fault names the setting, never the URL: that may hold a password.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from valkey.asyncio.connection import AbstractConnection, Connection, parse_url
from valkey.exceptions import AuthenticationError, NoPermissionError, ResponseError, ValkeyError

from turnline.errors import ConfigurationError
from turnline.protocol.clock import Clock
from turnline.store.valkey.commands import Commands, will_pass
from turnline.store.valkey.link import Connect
from turnline.store.valkey.listener import Listener
from turnline.telemetry import get_logger

_log = get_logger("store")

CALL_SECONDS = 5.0
OLDEST_VERSION = 7
_ASK_AGAIN_SECONDS = 0.1
# What a URL may ask for; the rest of the client's options would undo what is promised here.
_URL_OPTIONS = frozenset(
    {
        "connection_class",
        "db",
        "host",
        "password",
        "path",
        "port",
        "ssl_ca_certs",
        "ssl_ca_path",
        "ssl_cert_reqs",
        "ssl_certfile",
        "ssl_check_hostname",
        "ssl_keyfile",
        "username",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Where a server is and how long to wait for it.

    Attributes:
        setting: dotted name of the setting that holds `url`; faults name it.
        url: may hold a password.
        deadline: seconds one call may take, waiting for a lost connection included.
        start_within: seconds a server may take to answer at start-up.
    """

    setting: str
    url: str = field(repr=False)
    deadline: float = CALL_SECONDS
    start_within: float = CALL_SECONDS


@asynccontextmanager
async def open_commands(options: ServerOptions, clock: Clock) -> AsyncIterator[Commands]:
    """Connect, check the server, and give calls to it for the length of the block.

    Raises:
        ConfigurationError: the URL is none, nobody answers there in time or refuses us, or the
            server is unfit; the text says which.
    """
    connect = _connector(options)
    await _check(options, connect, clock)
    commands = Commands(connect, clock, name=_name(options), deadline=options.deadline)
    async with _running(commands.link.run):
        yield commands


@asynccontextmanager
async def open_listener(options: ServerOptions, clock: Clock) -> AsyncIterator[Listener]:
    """Give subscriptions for the length of the block; the server was checked."""
    connect = _connector(options)
    name = f"{_name(options)} notices"
    listener = Listener(connect, clock, name=name, deadline=options.deadline)
    async with _running(listener.link.run):
        yield listener


class _running:
    """Run a task that only ends by being cancelled beside an `async with` block.

    What the block raises comes out as it is, and not in the group that a TaskGroup makes of it.
    """

    def __init__(self, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._run = run
        self._group = asyncio.TaskGroup()

    async def __aenter__(self) -> None:
        await self._group.__aenter__()
        self._task = self._group.create_task(self._run())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._task.cancel()
        # The group has to know of a cancellation: it may be its own, after a fault in the task.
        if isinstance(error, asyncio.CancelledError):
            await self._group.__aexit__(kind, error, traceback)
        else:
            await self._group.__aexit__(None, None, None)


def _name(options: ServerOptions) -> str:
    return options.setting.rpartition(".")[0] or options.setting


def _connector(options: ServerOptions) -> Connect:
    try:
        asked: dict[str, Any] = dict(parse_url(options.url))
    except ValueError as error:
        raise ConfigurationError(
            [f"{options.setting}: is no URL this can use; write valkey://host:6379"]
        ) from error
    strange = sorted(asked.keys() - _URL_OPTIONS)
    if strange:
        raise ConfigurationError(
            [f"{options.setting}: its URL holds an option that is not supported: {strange[0]:.40}"]
        )
    kind: type[AbstractConnection] = asked.pop("connection_class", Connection)
    asked |= {"socket_timeout": None, "protocol": 2, "lib_name": None, "lib_version": None}

    def connect() -> AbstractConnection:
        return kind(**asked)

    return connect


# --- checks at start-up -------------------------------------------------------------------------


async def _check(options: ServerOptions, connect: Connect, clock: Clock) -> None:
    last: list[Exception] = []
    try:
        async with asyncio.timeout(options.start_within):
            info = await _first_answer(connect, clock, last)
    except AuthenticationError as error:
        raise _fault(options, "the server refuses its user and password") from error
    except ResponseError as error:
        raise _fault(options, f"the server refuses the connection: {error!s:.100}") from error
    except TimeoutError as error:
        why = f" ({last[-1]!s:.100})" if last else ""
        raise _fault(
            options,
            "no server answers there; check host and port, and that the URL says valkeys:// or "
            f"rediss:// if, and only if, the server speaks TLS{why}",
        ) from (last[-1] if last else error)
    _check_version(options, info)
    _check_cluster(options, info)
    _check_eviction(options, info)


async def _first_answer(
    connect: Connect, clock: Clock, errors: list[Exception]
) -> Mapping[str, str]:
    """Ask until a server answers; a refusal of who we are comes at once."""
    while True:
        connection = connect()
        try:
            await connection.connect()  # type: ignore[no-untyped-call]  # not annotated
            await connection.send_command("INFO", "server", "memory", "cluster")
            return _fields(await connection.read_response())
        except NoPermissionError:
            return {}
        except AuthenticationError:
            raise
        except (ValkeyError, OSError) as error:
            if isinstance(error, ResponseError) and not will_pass(error):
                raise
            errors[:] = [error]
            await clock.sleep_until(clock.monotonic() + _ASK_AGAIN_SECONDS)
        finally:
            await connection.disconnect(nowait=True)


def _fields(raw: bytes) -> Mapping[str, str]:
    lines = raw.decode(errors="replace").splitlines()
    return {name: value for name, colon, value in (line.partition(":") for line in lines) if colon}


def _check_version(options: ServerOptions, info: Mapping[str, str]) -> None:
    version = info.get("redis_version", "")
    major = version.partition(".")[0]
    if major.isdigit() and int(major) < OLDEST_VERSION:
        raise _fault(options, f"the server is version {version}; use Valkey 8 or Redis 7 or newer")


def _check_cluster(options: ServerOptions, info: Mapping[str, str]) -> None:
    if info.get("cluster_enabled") == "1":
        _log.warning(
            "config.warning",
            setting=options.setting,
            reason="the server is in cluster mode; this uses one shard, which must own all slots",
        )


def _check_eviction(options: ServerOptions, info: Mapping[str, str]) -> None:
    policy = info.get("maxmemory_policy")
    if policy == "noeviction":
        return
    if policy is not None and info.get("maxmemory", "0") != "0":
        raise _fault(
            options,
            f"the server's maxmemory-policy is {policy}, which drops claims and done marks, so "
            "that turns run twice; set it to noeviction",
        )
    reason = (
        "the server's maxmemory-policy could not be read; it must be noeviction"
        if policy is None
        else f"the server's maxmemory-policy is {policy}; set noeviction before a maxmemory"
    )
    _log.warning("config.warning", setting=options.setting, reason=reason)


def _fault(options: ServerOptions, why: str) -> ConfigurationError:
    return ConfigurationError([f"{options.setting}: {why}"])
