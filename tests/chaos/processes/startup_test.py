"""Processes that start before their broker is there."""

from pathlib import Path

from chaos.processes.observed import finally_
from chaos.processes.topology import Kind, environment, topology
from e2e.process import Server, cli, spawned

GATEWAY = cli("serve", Kind.GATEWAY.value)


async def test_a_process_waits_for_a_nats_that_comes_up_later(tmp_path: Path) -> None:
    async with topology(tmp_path) as installed:
        installed.nats.stop()
        directory = tmp_path / "gateway"
        async with spawned(directory, *GATEWAY, settings=environment(installed.settings)) as server:
            await finally_(lambda: _was_refused(server))
            await installed.nats.start()
            await server.is_ready()


async def test_a_process_told_to_stop_while_it_waits_ends_at_once_and_well(tmp_path: Path) -> None:
    async with topology(tmp_path) as installed:
        installed.nats.stop()
        directory = tmp_path / "gateway"
        async with spawned(directory, *GATEWAY, settings=environment(installed.settings)) as server:
            await finally_(lambda: _was_refused(server))
            server.process.terminate()
            ended = await server.ended(within=5)

    assert ended.code == 0
    assert "Traceback" not in ended.stderr


async def _was_refused(server: Server) -> bool:
    return bool(server.events("dependency.unavailable"))
