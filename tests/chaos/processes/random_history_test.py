"""Users at work while processes and servers fail at random; each seed is one replayable ordeal.

To replay: `python -m chaos.processes.run --seed 7`.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from chaos.oracle import faults_of
from chaos.processes.mishaps import KINDS
from chaos.processes.ordeal import SHORT_LEASES, Size, suffer
from chaos.processes.topology import Topology, topology

pytestmark = pytest.mark.asyncio(loop_scope="module")

SEEDS = range(3)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def installed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Topology]:
    """Two of each service."""
    directory = tmp_path_factory.mktemp("random")
    async with topology(directory, SHORT_LEASES, proxied=KINDS) as installed:
        await installed.start_all(*KINDS, *KINDS)
        yield installed


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"seed{seed}")
async def test_any_history_is_whole(installed: Topology, seed: int) -> None:
    history, befallen = await suffer(installed, seed, Size())

    assert len(history.accepted) >= Size().sessions * Size().turns
    assert faults_of(history) == [], "\n".join(map(str, befallen))
