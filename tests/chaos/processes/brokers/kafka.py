"""Kafka, alone or three brokers that replicate."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from chaos.processes.brokers.one_server import OneServer
from chaos.processes.brokers.port import Block, Broker, Cluster, Ill
from turnline.config import Settings
from turnline.protocol.clock import SystemClock
from turnline.testing.servers.kafka import Door, KafkaServer
from turnline.testing.servers.tcp_proxy import TcpProxy
from turnline.transport.kafka import open_provisioner


def _kafka(block: Block) -> Block:
    return {"execution": {"queues": {"type": "kafka", "kafka": block}}}


def _settings(bootstrap: str, partitions: int, replicas: int = 1) -> Block:
    name = f"t{uuid.uuid4().hex[:8]}"
    return _kafka(
        {
            "bootstrap_servers": bootstrap,
            "partitions": partitions,
            "replicas": replicas,
            "input_topic": f"{name}-in",
            "output_topic": f"{name}-out",
            "group_id": name,
        }
    )


# The settings take no silence below 6 s, as most brokers do not; the servers of tests do.
SHORT_LEASES = _kafka(
    {
        "ack_wait": 6,
        "retry_backoff": 0.2,
        "delivery_timeout": 5,
        "client_config": {"session.timeout.ms": 2000, "heartbeat.interval.ms": 300},
    }
)


@dataclass(slots=True)
class KafkaBroker(OneServer):
    """One broker; see `Broker`."""

    name: str = "kafka"
    ills: tuple[Ill, ...] = tuple(Ill)
    short_leases: Block = field(default_factory=lambda: SHORT_LEASES)

    def through(self, proxy: TcpProxy) -> Block:
        """See `Broker`."""
        return _kafka({"bootstrap_servers": f"127.0.0.1:{proxy.port}"})


@dataclass(slots=True)
class KafkaThree:
    """Three brokers; see `Cluster`."""

    servers: KafkaServer
    address: str
    settings: Block
    name: str = "kafka"
    short_leases: Block = field(default_factory=lambda: SHORT_LEASES)
    variables: Mapping[str, str] = field(default_factory=dict)

    async def replace_leader(self, queue: str, *, away: float) -> None:
        topic = self.settings["execution"]["queues"]["kafka"][f"{queue}_topic"]
        leader = await self.servers.leader_of(topic)
        await asyncio.to_thread(self.servers.kill, leader)
        await asyncio.sleep(away)
        await self.servers.start()


@asynccontextmanager
async def one_kafka(proxied: Iterable[str], *, partitions: int) -> AsyncIterator[Broker]:
    """Run one broker with the topics made.

    It tells its clients where to go on, so each kind of process that comes through a proxy has a
    listener of its own, which sends it back to that proxy.
    """
    kinds = list(proxied)
    doors = {kind: f"DOOR{number}" for number, kind in enumerate(kinds)}
    server = KafkaServer(doors=[Door(name=door) for door in doors.values()])
    proxies = {kind: TcpProxy(*server.ports_of(doors[kind])) for kind in kinds}
    async with AsyncExitStack() as stack:
        for kind, proxy in proxies.items():
            await stack.enter_async_context(proxy)
            server.advertise(doors[kind], [proxy.port])
        await stack.enter_async_context(server)
        settings = _settings(server.bootstrap, partitions)
        await _provision(settings)
        yield KafkaBroker(server, server.bootstrap, settings, proxies)


@asynccontextmanager
async def three_kafka() -> AsyncIterator[Cluster]:
    """Run three brokers with the topics made."""
    async with KafkaServer(nodes=3) as servers:
        settings = _settings(servers.bootstrap, partitions=2, replicas=3)
        await _provision(settings)
        yield KafkaThree(servers, servers.bootstrap, settings)


async def _provision(settings: Block) -> None:
    async with open_provisioner(Settings.model_validate(settings), SystemClock()) as provisioner:
        await provisioner.apply()
