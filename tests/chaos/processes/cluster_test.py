"""Three NATS servers that replicate, and the one that leads dies while turns are under way."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from chaos.oracle import faults_of
from chaos.processes.mishaps import KINDS
from chaos.processes.ordeal import SHORT_LEASES, Size, suffer
from chaos.processes.topology import Topology, merged, topology
from turnline.testing.servers.nats import NatsCluster

REPLICATED = {"execution": {"queues": {"nats": {"replicas": 3, "partitions": 2}}}}
SIZE = Size(sessions=5, turns=4, mishaps=0)


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[NatsCluster]:
    async with NatsCluster() as cluster:
        yield cluster


@pytest_asyncio.fixture
async def installed(
    tmp_path_factory: pytest.TempPathFactory, cluster: NatsCluster
) -> AsyncIterator[Topology]:
    """One of each service."""
    directory = tmp_path_factory.mktemp("cluster")
    settings = merged(SHORT_LEASES, REPLICATED)
    async with topology(directory, settings, cluster=cluster) as installed:
        await installed.start_all(*KINDS)
        yield installed


async def test_histories_are_whole_though_the_leader_of_each_stream_is_killed_under_load(
    installed: Topology, cluster: NatsCluster
) -> None:
    queues = installed.settings["execution"]["queues"]["nats"]

    async def kill_leaders() -> None:
        for stream in (queues["input_stream"], queues["output_stream"]):
            await asyncio.sleep(1.5)
            leader = await cluster.leader_of(stream)
            cluster.kill_node(leader)
            await asyncio.sleep(1.5)
            cluster.start_node(leader)
            await cluster.wait_healthy()

    history, _ = await suffer(installed, 0, SIZE, beside=kill_leaders)

    assert len(history.accepted) == SIZE.sessions * SIZE.turns
    assert faults_of(history) == []
