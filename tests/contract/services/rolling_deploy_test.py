"""A rolling deploy under load: nobody who asks loses, repeats, reorders or waits for anything.

Every process is replaced, one after the other, while turns in every client mode are under way at
it; what clients, agents, sessions and queues say afterwards is judged as one whole.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from chaos.oracle import faults_of
from chaos.processes.observed import attempts_at
from chaos.processes.topology import Kind
from contract.services.rolling import SERVICE_RESTART, Deploy, installed, untold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(280)]

SEED = 8


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def deploy(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Deploy]:
    """A deploy that is over."""
    async with installed(tmp_path_factory.mktemp("rolling")) as topology:
        deploy = Deploy(topology, SEED)
        await deploy.run()
        yield deploy


async def test_nothing_is_lost_doubled_or_reordered_and_nobody_waits_in_vain(
    deploy: Deploy,
) -> None:
    history = deploy.work.history

    assert faults_of(history) == []
    assert len(history.accepted) == sum(len(wave.asked) for wave in deploy.waves)


async def test_turns_under_way_lose_no_attempt(deploy: Deploy) -> None:
    under_way = [plan.turns[0].request for wave in deploy.waves for plan in wave.under_way()]

    attempts = {request: attempts_at(deploy.topology, request) for request in under_way}

    assert attempts == {request: [1] for request in under_way}


async def test_sockets_are_told_to_reconnect_and_go_on_at_the_other_gateway(
    deploy: Deploy,
) -> None:
    clients = [
        client
        for wave in deploy.waves
        if wave.leaving.kind is Kind.GATEWAY
        for client in wave.sockets()
    ]

    assert [len(client.connections) > 1 for client in clients] == [True] * 4
    assert [fault for client in clients for fault in untold(client)] == []
    # Those who asked beside them were closed in no other way.
    codes = [code for client in deploy.work.clients.values() for code in client.closed_with]
    assert set(codes) == {SERVICE_RESTART}
