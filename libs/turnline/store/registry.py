"""Stores by name, loaded only when chosen.

An adapter is a module with the three functions `open_response_store`, `open_session_store` and
`open_connection_store`, each `(settings, clock) -> async context manager giving the store`.  One
that processes share also has `open_bookkeeping`, in the same form, for transports that need it; one
whose server holds objects that must be made has `open_provisioner(settings, clock) -> Provisioner`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from turnline.config import Settings, load_adapter
from turnline.config.provisioning import Provisioner
from turnline.errors import ConfigurationError
from turnline.protocol.clock import Clock
from turnline.store.ports import ConnectionStore, ResponseStore, SessionStore

ADAPTERS = MappingProxyType(
    {
        "dynamodb": "turnline.store.dynamodb",
        "in_memory": "turnline.store.memory",
        "redis": "turnline.store.valkey",
        "valkey": "turnline.store.valkey",
    }
)


@runtime_checkable
class _Remote(Protocol):
    async def check(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """The three stores of a process, open."""

    replies: ResponseStore
    sessions: SessionStore
    connections: ConnectionStore

    @property
    def checks(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """Ask whether a backing service answers: name -> returns, or StoreUnavailableError.

        Of stores that have a `check()`; one that lives in this process has nothing to ask.
        Connections are on the server of the sessions.
        """
        stores = {"response_store": self.replies, "session_store": self.sessions}
        return {name: store.check for name, store in stores.items() if isinstance(store, _Remote)}


@asynccontextmanager
async def open_stores(settings: Settings, clock: Clock) -> AsyncIterator[Stores]:
    """Open the stores that `execution.response_store.type` and `session.type` name.

    Raises:
        ConfigurationError: this installation lacks an adapter; names every such setting.
    """
    replies = load_adapter(ADAPTERS, settings.execution.response_store.type)
    sessions = load_adapter(ADAPTERS, settings.session.type)
    if replies is None or sessions is None:
        raise ConfigurationError(_missing(settings))
    async with AsyncExitStack() as stack:
        yield Stores(
            replies=await stack.enter_async_context(replies.open_response_store(settings, clock)),
            sessions=await stack.enter_async_context(sessions.open_session_store(settings, clock)),
            connections=await stack.enter_async_context(
                sessions.open_connection_store(settings, clock)
            ),
        )


@asynccontextmanager
async def open_bookkeeping(settings: Settings, clock: Clock) -> AsyncIterator[Any]:
    """Open the books of the transport's queues where `session.type` keeps sessions.

    Gives a `turnline.transport.Bookkeeping`, which this room does not know, or None: sessions are
    kept where no other process sees them.
    """
    adapter = load_adapter(ADAPTERS, settings.session.type)
    make = getattr(adapter, "open_bookkeeping", None)
    if make is None:
        yield None
        return
    async with make(settings, clock) as books:
        yield books


def open_provisioners(settings: Settings, clock: Clock) -> Sequence[Provisioner]:
    """Make the provisioners of the stores that the settings name; empty: they need nothing made.

    Raises:
        ConfigurationError: this installation lacks an adapter, or a setting of one is missing.
    """
    kinds = sorted({settings.execution.response_store.type, settings.session.type})
    adapters = {id(found): found for kind in kinds if (found := load_adapter(ADAPTERS, kind))}
    if len(adapters) < len({ADAPTERS[kind] for kind in kinds}):
        raise ConfigurationError(_missing(settings))
    makes = [getattr(adapter, "open_provisioner", None) for adapter in adapters.values()]
    return [make(settings, clock) for make in makes if make is not None]


def _missing(settings: Settings) -> list[str]:
    names = {
        "execution.response_store.type": settings.execution.response_store.type,
        "session.type": settings.session.type,
    }
    known = ", ".join(sorted(ADAPTERS))
    return [
        f"{key}: this installation has no {name!r} store; use {known}"
        for key, name in names.items()
        if load_adapter(ADAPTERS, name) is None
    ]
