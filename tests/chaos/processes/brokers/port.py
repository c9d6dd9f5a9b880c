"""What the rest asks of a broker: where it is, and to fail in a way.  Knows no broker."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from turnline.testing.servers.tcp_proxy import TcpProxy

Block = Mapping[str, Any]


class Ill(StrEnum):
    """What can befall a broker."""

    KILL = "the broker is killed and started"
    STOP = "the broker is stopped and started"
    FREEZE = "the broker freezes and wakes up"
    CUT = "connections to the broker are reset"
    STALL = "bytes to the broker are held up"
    DEAF = "bytes from the broker are held up"


class Served(Protocol):
    """What an installation is told of its broker.

    Attributes:
        name: what `execution.queues.type` calls it.
        address: where clients that need no proxy find it.
        settings: blocks with its address, and with names on it that nobody else uses.
        short_leases: blocks by which what a dead process held comes back soon.
        variables: of its library's own, for the processes.
    """

    name: str
    address: str
    settings: Block
    short_leases: Block
    variables: Mapping[str, str]


@runtime_checkable
class Broker(Served, Protocol):
    """A broker that tests break, and what lies between it and the processes.

    Attributes:
        ills: what may befall it.
        proxies: between it and the processes of a kind, for the kinds that have one.
    """

    ills: tuple[Ill, ...]
    proxies: Mapping[str, TcpProxy]

    def through(self, proxy: TcpProxy) -> Block:
        """Give blocks with the address of a proxy."""
        ...

    async def start(self) -> None:
        """Start it with what it kept; return when it serves."""
        ...

    async def stop(self, *, hard: bool) -> None:
        """Stop it in good order, or on the spot."""
        ...

    def freeze(self) -> None:
        """Let it answer nothing, with its sockets open."""
        ...

    def thaw(self) -> None:
        """Let it go on."""
        ...


class Cluster(Served, Protocol):
    """Three brokers that replicate."""

    async def replace_leader(self, queue: str, *, away: float) -> None:
        """Kill the one that leads a queue (`input` or `output`); start it after `away` seconds."""
        ...


class OpenBroker(Protocol):
    """Runs a broker for the length of a block."""

    def __call__(
        self, proxied: Iterable[str], *, partitions: int
    ) -> AbstractAsyncContextManager[Broker]:
        """Run it.

        Args:
            proxied: the kinds of processes that come through a proxy.
            partitions: of each queue.
        """
        ...


OpenCluster = Callable[[], AbstractAsyncContextManager[Cluster]]
