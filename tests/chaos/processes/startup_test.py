"""Processes that start before their broker is there."""

from pathlib import Path

import pytest

from chaos.processes.brokers import RESTARTABLE
from chaos.processes.observed import finally_
from chaos.processes.topology import Kind, environment, topology
from e2e.process import Server, cli, spawned

pytestmark = pytest.mark.parametrize("transport", RESTARTABLE)

GATEWAY = cli("serve", Kind.GATEWAY.value)


async def test_a_process_waits_for_a_broker_that_comes_up_later(
    tmp_path: Path, transport: str
) -> None:
    async with topology(tmp_path, transport=transport) as installed:
        await installed.broker.stop(hard=False)
        directory = tmp_path / "gateway"
        async with spawned(directory, *GATEWAY, settings=environment(installed.settings)) as server:
            await finally_(lambda: _was_refused(server))
            await installed.broker.start()
            await server.is_ready()


async def test_a_process_told_to_stop_while_it_waits_ends_at_once_and_well(
    tmp_path: Path, transport: str
) -> None:
    async with topology(tmp_path, transport=transport) as installed:
        await installed.broker.stop(hard=False)
        directory = tmp_path / "gateway"
        async with spawned(directory, *GATEWAY, settings=environment(installed.settings)) as server:
            await finally_(lambda: _was_refused(server))
            server.process.terminate()
            ended = await server.ended(within=5)

    assert ended.code == 0
    assert "Traceback" not in ended.stderr


async def _was_refused(server: Server) -> bool:
    return bool(server.events("dependency.unavailable"))
