"""Random workloads against dying and failing runners; each seed is one replayable history.

To replay: `pytest tests/chaos/random_history_test.py -k seed7`.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from chaos.faults import Fault, Kind, Step
from chaos.oracle import faults_of
from chaos.rig import Rig, Speak, open_rig
from turnline.agent import RetryableAgentError, Turn
from turnline.frontdoor import Admitted

SEEDS = range(12)


@dataclass(frozen=True, slots=True)
class Workload:
    """What one seed does."""

    sessions: int
    turns: int
    runners: int
    faults: int
    failing: float


def workload_of(rng: random.Random) -> Workload:
    """Draw the sizes of a workload."""
    return Workload(
        sessions=rng.randint(1, 8),
        turns=rng.randint(10, 40),
        runners=rng.randint(1, 3),
        faults=rng.randint(1, 5),
        failing=rng.choice([0.0, 0.1, 0.4]),
    )


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: f"seed{seed}")
async def test_any_history_is_whole(seed: int) -> None:
    rng = random.Random(seed)
    workload = workload_of(rng)
    async with open_rig() as rig:
        rig.speak = _agent(random.Random(seed + 1), workload)
        async with asyncio.TaskGroup() as tasks:
            breaking = tasks.create_task(_break_runners(rig, rng, workload))
            answers = [
                tasks.create_task(rig.answer(admitted))
                async for admitted in _submit(rig, random.Random(seed + 2), workload)
            ]
            await breaking
        history = await rig.note_histories()

    assert len(answers) == workload.turns
    assert faults_of(history) == []


async def _submit(rig: Rig, rng: random.Random, workload: Workload) -> AsyncIterator[Admitted]:
    for number in range(workload.turns):
        session = f"s{rng.randrange(workload.sessions)}"
        admitted = await rig.submit(session, f"{session}-{number}")
        if rng.random() < 0.3:
            await rig.submit(session, f"{session}-{number}")
        if rng.random() < 0.5:
            await asyncio.sleep(rng.random() * 0.02)
        yield admitted


async def _break_runners(rig: Rig, rng: random.Random, workload: Workload) -> None:
    for _ in range(workload.runners):
        rig.start_runner()
    for _ in range(workload.faults):
        fault = Fault(rng.choice(list(Step)), rng.choice(list(Kind)))
        rig.start_runner(fault)
        await asyncio.sleep(rng.random() * 0.1)
        rng.choice(rig.worlds).die()
    rig.start_runner()


def _agent(rng: random.Random, workload: Workload) -> Speak:
    async def speak(turn: Turn) -> AsyncIterator[str]:
        for index in range(rng.randint(0, 6)):
            yield f"{turn.attempt}.{index} "
            if rng.random() < 0.3:
                await asyncio.sleep(rng.random() * 0.03)
        if rng.random() < workload.failing:
            if rng.random() < 0.5:
                raise RuntimeError("boom")
            raise RetryableAgentError(retry_after=0.01)

    return speak
