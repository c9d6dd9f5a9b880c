"""The guide's two processes, each twice, while they and their servers fail at random.

To replay: `python -m chaos.processes.run --layout two --transport kafka --seed 0`.
"""

from pathlib import Path

import pytest

from chaos.processes.brokers import RESTARTABLE
from chaos.processes.ordeal import Size, judged
from chaos.processes.topology import TWO, topology


@pytest.mark.parametrize("transport", RESTARTABLE)
async def test_any_history_of_two_processes_is_whole(tmp_path: Path, transport: str) -> None:
    async with topology(
        tmp_path, transport=transport, proxied=TWO.kinds, short_leases=True
    ) as installed:
        await installed.start_all(*TWO.kinds, *TWO.kinds)

        assert await judged(installed, 0, Size(), layout=TWO) == []
