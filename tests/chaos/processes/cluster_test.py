"""Three brokers that replicate, and the one that leads dies while turns are under way."""

import asyncio
from pathlib import Path

import pytest

from chaos.oracle import faults_of
from chaos.processes.brokers import CLUSTERS
from chaos.processes.ordeal import Size, suffer
from chaos.processes.topology import FIVE, over

SIZE = Size(sessions=5, turns=4, mishaps=0)
AWAY_SECONDS = 1.5


@pytest.mark.timeout(200)
@pytest.mark.parametrize("transport", sorted(CLUSTERS))
async def test_histories_are_whole_though_the_leader_of_each_queue_is_killed_under_load(
    tmp_path: Path, transport: str
) -> None:
    async with (
        CLUSTERS[transport]() as cluster,
        over(cluster, tmp_path, short_leases=True) as installed,
    ):
        await installed.start_all(*FIVE.kinds)

        async def kill_leaders() -> None:
            for queue in ("input", "output"):
                await asyncio.sleep(AWAY_SECONDS)
                await cluster.replace_leader(queue, away=AWAY_SECONDS)

        history, _ = await suffer(installed, 0, SIZE, beside=kill_leaders)

    assert len(history.accepted) == SIZE.sessions * SIZE.turns
    assert faults_of(history) == []
