"""Runners that die, freeze or are sent away in the middle of a turn, at default leases.

On SQS they are shorter: there the open polls of a runner that died may take its turn for one each.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from chaos.processes.brokers import BROKERS
from chaos.processes.callers import RestCaller
from chaos.processes.directives import Directives
from chaos.processes.observed import (
    begun,
    commits_of,
    dead_letters,
    repaired,
    replaced_as_they_end,
    runner_of,
    up,
    urls,
)
from chaos.processes.topology import Kind, Topology, topology
from turnline.protocol import SessionKey

pytestmark = pytest.mark.asyncio(loop_scope="module")

USER = "u"
GRACE_SECONDS = 3.0
# A turn that takes three processes with it waits for as many leases, and new processes.
TURN_SECONDS = 200.0


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=sorted(BROKERS))
async def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Topology]:
    """Two runners, and one of everything else REST needs."""
    execution = {"drain_grace": GRACE_SECONDS, "turn_timeout": TURN_SECONDS}
    directory = tmp_path_factory.mktemp("runners")
    async with topology(
        directory,
        {"execution": execution},
        transport=request.param,
        short_leases=request.param == "sqs",
    ) as installed:
        await installed.start_all(Kind.REQUEST_HANDLER, Kind.RESPONDER, Kind.RUNNER, Kind.RUNNER)
        yield installed


@pytest.fixture
def lets_go(installed: Topology) -> None:
    """Skip where a frozen process may be given a turn again and again (ADR 0012)."""
    if installed.served_by.name == "sqs":
        pytest.skip("on SQS the open polls of a frozen process may take its turn for a lease each")


@pytest_asyncio.fixture(loop_scope="module")
async def caller(installed: Topology) -> AsyncIterator[RestCaller]:
    caller = RestCaller(
        lambda: urls(installed, Kind.REQUEST_HANDLER), USER, budget=TURN_SECONDS + 20
    )
    yield caller
    await caller.close()
    await repaired(installed)


async def test_a_turn_whose_runner_is_killed_is_run_by_another(
    installed: Topology, caller: RestCaller
) -> None:
    async with asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(caller.ask("killed", "killed-1", Directives(sleep=1).prompt))
        await begun(installed, "killed-1")
        runner_of(installed, "killed-1").kill()

    assert asked.result().body["result"] == "killed-1.2.0 "
    session = await installed.session(SessionKey(USER, "killed"))
    assert [record.request_id for record in session.history] == ["killed-1"]


@pytest.mark.usefixtures("lets_go")
async def test_a_runner_frozen_past_its_lease_is_fenced_and_its_turn_committed_once(
    installed: Topology, caller: RestCaller, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    async with asyncio.TaskGroup() as tasks:
        prompt = Directives(hold=str(go)).prompt
        asked = tasks.create_task(caller.ask("frozen", "frozen-1", prompt))
        await begun(installed, "frozen-1")
        frozen = runner_of(installed, "frozen-1")
        frozen.freeze()
        await begun(installed, "frozen-1", 2)
        frozen.thaw()
        go.touch()
        following = tasks.create_task(caller.ask("frozen", "frozen-2", Directives().prompt))

    assert asked.result().body["result"] == "frozen-1.2.0 "
    assert following.result().status == 200
    assert await caller.poll("frozen-1") == asked.result()
    assert len(commits_of(installed, "frozen-1")) == 1
    session = await installed.session(SessionKey(USER, "frozen"))
    assert [record.request_id for record in session.history] == ["frozen-1", "frozen-2"]
    assert session.state == {"answered": ["frozen-1", "frozen-2"]}


async def test_a_runner_told_to_stop_hands_its_long_turn_back_unspent(
    installed: Topology, caller: RestCaller, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    async with asyncio.TaskGroup() as tasks:
        prompt = Directives(hold=str(go)).prompt
        asked = tasks.create_task(caller.ask("drained", "drained-1", prompt))
        await begun(installed, "drained-1")
        stopped = runner_of(installed, "drained-1")
        stopped.terminate()
        await begun(installed, "drained-1", 2)
        ended = await stopped.ended()
        go.touch()

    assert asked.result().status == 200
    assert ended.code == 0
    # What the agent is told counts its starts; the log says which attempt the queue counts.
    [committed] = commits_of(installed, "drained-1")
    assert committed["attempt"] == 1


@pytest.mark.timeout(TURN_SECONDS + 60)
async def test_a_turn_that_ends_its_process_on_every_attempt_is_answered_and_buried(
    installed: Topology, caller: RestCaller
) -> None:
    async with replaced_as_they_end(installed, Kind.RUNNER):
        await caller.submit("crashing", "crashing-1", Directives(crashes=True).prompt)
        answer = await caller.poll("crashing-1")
        following = await caller.ask("crashing", "crashing-2", Directives().prompt)

    assert (answer.status, answer.code) == (500, "agent_failed")
    assert following.status == 200
    assert await caller.poll("crashing-1") == answer
    # Another one may be about to be replaced.
    runner = up(installed, Kind.RUNNER)
    letters = await dead_letters(runner)
    assert [letter["request_id"] for letter in letters] == ["crashing-1"]
    await runner.has_queued(running=0, waiting=0)
