"""The guide's two-process layout, IOHandler and AgentRunner, over servers that outlive both."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from chaos.oracle import stream_faults
from chaos.processes.brokers import RESTARTABLE
from chaos.processes.callers import RestCaller
from chaos.processes.directives import Directives
from chaos.processes.observed import begun, commits_of, eventually, urls
from chaos.processes.readings import reply_of, stream_of
from chaos.processes.topology import Kind, Topology, topology
from turnline.protocol import SessionKey

pytestmark = pytest.mark.asyncio(loop_scope="module")

USER = "u"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=RESTARTABLE)
async def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Topology]:
    directory = tmp_path_factory.mktemp("two")
    async with topology(directory, transport=request.param, short_leases=True) as installed:
        await installed.start_all(Kind.IO, Kind.RUNNER)
        yield installed


@pytest_asyncio.fixture(loop_scope="module")
async def caller(installed: Topology) -> AsyncIterator[RestCaller]:
    caller = RestCaller(lambda: urls(installed, Kind.IO), USER)
    yield caller
    await caller.close()


async def test_a_caller_comes_back_to_a_new_io_process_for_an_answer_given_meanwhile(
    installed: Topology, caller: RestCaller, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    [io] = installed.of(Kind.IO)
    async with asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(caller.ask("io", "io-1", Directives(hold=str(go)).prompt))
        await begun(installed, "io-1")
        io.kill()
        await io.ended()
        go.touch()
        await eventually(lambda: bool(commits_of(installed, "io-1")))
        await installed.replace(io)

    assert asked.result().body["result"] == "io-1.1.0 "
    assert len(commits_of(installed, "io-1")) == 1


async def test_a_stream_goes_on_though_both_processes_are_killed_in_its_middle(
    installed: Topology, caller: RestCaller
) -> None:
    asked = Directives(chunks=10, gap=0.15)
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(caller.events("both", "both-1", asked.prompt))
        await begun(installed, "both-1")
        await asyncio.sleep(0.5)  # into the middle of the pieces
        for pod in installed.pods:
            pod.kill()
        for pod in installed.pods:
            await installed.replace(pod)
    kept = await caller.poll("both-1")

    assert kept.body["result"].startswith("both-1.2.0 ")
    assert stream_faults(stream_of(reading.result(), reply_of("both-1", kept))) == []
    session = await installed.session(SessionKey(USER, "both"))
    assert [record.request_id for record in session.history] == ["both-1"]
