"""Each service can be upgraded, or left behind, alone: it serves among those of the other side.

The last release runs beside this source in one installation.  Services are replaced one by one
while turns are under way; none may be lost, and every client mode must go on.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from contract.services.clients import Client
from contract.services.installation import Installation, installation
from contract.services.packages import (
    PIPELINE,
    ROOT,
    Build,
    Packed,
    Released,
    Service,
    last_release,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

NEW = Packed()
AT_ONCE = 3


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Released:
    return last_release(tmp_path_factory.mktemp("release"))


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def installed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    async with installation(tmp_path_factory.mktemp("upgrade")) as opened:
        yield opened


async def replaced_under_load(installed: Installation, service: Service, build: Build) -> None:
    """Replace a service while turns are under way; each must be answered, and run once."""
    poller, listener, reader = (Client(installed) for _ in range(3))
    names: list[str] = []

    async with asyncio.TaskGroup() as tasks:

        async def ask() -> None:
            asked, begun = asyncio.Event(), asyncio.Event()
            tasks.create_task(listener.holds_on_to_a_socket(asked))
            tasks.create_task(reader.follows_a_stream(begun))
            names.append(await poller.submits())
            await asked.wait()
            await begun.wait()

        await installed.replace(service, build, ask)

    await poller.is_told_of(names[0])
    for client in (poller, listener, reader):
        await client.has_all_in_its_history()


async def alone_among(
    installed: Installation, service: Service, build: Build, others: Build
) -> None:
    """Let all services be of one build, then replace one, and ask in every mode."""
    await installed.arrange(dict.fromkeys(PIPELINE, others))
    await replaced_under_load(installed, service, build)
    async with asyncio.TaskGroup() as tasks:
        for _ in range(AT_ONCE):
            tasks.create_task(Client(installed).asks_in_every_mode())


@pytest.mark.parametrize("service", PIPELINE)
async def test_a_service_that_is_upgraded_first_serves_among_the_last_release(
    installed: Installation, old: Build, service: Service
) -> None:
    await alone_among(installed, service, NEW, others=old)


@pytest.mark.parametrize("service", PIPELINE)
async def test_a_service_that_is_left_behind_serves_among_this_version(
    installed: Installation, old: Build, service: Service
) -> None:
    await alone_among(installed, service, old, others=NEW)


async def test_each_build_runs_its_own_code(old: Released, tmp_path: Path) -> None:
    its = await old.origin(tmp_path / "old")
    ours = await NEW.origin(tmp_path / "new")

    assert its.is_relative_to(old.folder)
    assert ours.is_file()
    assert not ours.is_relative_to(ROOT)
    assert not ours.is_relative_to(old.folder)
