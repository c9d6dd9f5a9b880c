"""NATS, alone or three that replicate."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from chaos.processes.brokers.one_server import OneServer
from chaos.processes.brokers.port import Block, Broker, Cluster, Ill
from turnline.testing.servers.nats import NatsCluster, NatsServer
from turnline.testing.servers.tcp_proxy import TcpProxy


def _nats(block: Block) -> Block:
    return {"execution": {"queues": {"type": "nats", "nats": block}}}


def _settings(url: str, partitions: int, replicas: int = 1) -> Block:
    name = f"t{uuid.uuid4().hex[:8]}"
    return _nats(
        {
            "url": url,
            "auto_provision": True,
            "partitions": partitions,
            "input_stream": f"{name}_IN",
            "input_subject_prefix": f"{name}.req",
            "output_stream": f"{name}_OUT",
            "output_subject_prefix": f"{name}.out",
            "replicas": replicas,
        }
    )


SHORT_LEASES = _nats({"ack_wait": 2, "retry_backoff": 0.2})


@dataclass(slots=True)
class NatsBroker(OneServer):
    """One server; see `Broker`."""

    name: str = "nats"
    ills: tuple[Ill, ...] = tuple(Ill)
    short_leases: Block = field(default_factory=lambda: SHORT_LEASES)

    def through(self, proxy: TcpProxy) -> Block:
        """See `Broker`."""
        return _nats({"url": f"nats://127.0.0.1:{proxy.port}"})


@dataclass(slots=True)
class NatsThree:
    """Three servers; see `Cluster`."""

    servers: NatsCluster
    address: str
    settings: Block
    name: str = "nats"
    short_leases: Block = field(default_factory=lambda: SHORT_LEASES)
    variables: Mapping[str, str] = field(default_factory=dict)

    async def replace_leader(self, queue: str, *, away: float) -> None:
        stream = self.settings["execution"]["queues"]["nats"][f"{queue}_stream"]
        leader = await self.servers.leader_of(stream)
        self.servers.kill_node(leader)
        await asyncio.sleep(away)
        self.servers.start_node(leader)
        await self.servers.wait_healthy()


@asynccontextmanager
async def one_nats(proxied: Iterable[str], *, partitions: int) -> AsyncIterator[Broker]:
    """Run one server; its streams are made by whichever process starts first."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(NatsServer())
        proxies = {kind: await stack.enter_async_context(TcpProxy(server.port)) for kind in proxied}
        yield NatsBroker(server, server.url, _settings(server.url, partitions), proxies)


@asynccontextmanager
async def three_nats() -> AsyncIterator[Cluster]:
    """Run three servers."""
    async with NatsCluster() as servers:
        yield NatsThree(servers, servers.url, _settings(servers.url, partitions=2, replicas=3))
