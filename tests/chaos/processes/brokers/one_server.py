"""What every broker of one server has in common."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from chaos.processes.brokers.port import Block
from turnline.testing.servers.tcp_proxy import TcpProxy


class Breakable(Protocol):
    """A server of the test kit."""

    async def start(self) -> None:
        """Start it with what it kept."""
        ...

    def stop(self) -> None:
        """Stop it in good order."""
        ...

    def kill(self) -> None:
        """Kill it on the spot."""
        ...

    def freeze(self) -> None:
        """Let it answer nothing."""
        ...

    def thaw(self) -> None:
        """Let it go on."""
        ...


@dataclass(slots=True)
class OneServer:
    """Breaks its server; the rest of a `Broker` is the subclass's to add."""

    server: Breakable
    address: str
    settings: Block
    proxies: Mapping[str, TcpProxy]
    variables: Mapping[str, str] = field(default_factory=dict)

    async def start(self) -> None:
        """See `Broker`."""
        await self.server.start()

    async def stop(self, *, hard: bool) -> None:
        """See `Broker`."""
        await asyncio.to_thread(self.server.kill if hard else self.server.stop)

    def freeze(self) -> None:
        """See `Broker`."""
        self.server.freeze()

    def thaw(self) -> None:
        """See `Broker`."""
        self.server.thaw()
