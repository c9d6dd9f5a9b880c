"""The crash matrix: a runner dies, or a call fails, before and after each step of a turn.

Whatever happens, every accepted turn is answered once, stands in its history once, in order, and a
turn whose result was committed is not run again.
"""

import pytest

from chaos.faults import Fault, Kind, Step
from chaos.oracle import faults_of, runs_of
from chaos.rig import open_rig
from turnline.protocol import ChatReply

STEPS = [Step.BEGIN, Step.CHUNKS, Step.COMMIT, Step.PUBLISH, Step.ACK]
MATRIX = [Fault(step, kind) for step in STEPS for kind in Kind]

# Where the result is durable when the fault strikes, the agent must not have run twice.
COMMITTED = {
    (Step.COMMIT, Kind.DIES_AFTER),
    (Step.COMMIT, Kind.FAILS_AFTER),
    *((step, kind) for step in (Step.PUBLISH, Step.ACK) for kind in Kind),
}


def _name(fault: Fault) -> str:
    return f"{fault.kind} {fault.step}".replace(" ", "-")


@pytest.mark.parametrize("fault", MATRIX, ids=_name)
async def test_one_fault_costs_no_turn_its_order_or_its_single_life(fault: Fault) -> None:
    async with open_rig() as rig:
        world = rig.start_runner(fault)
        turns = [await rig.submit("s1", f"turn-{number}") for number in range(3)]

        if fault.kind.dies:
            await world.died.wait()
            rig.start_runner()
        replies = [await rig.answer(turn) for turn in turns]
        history = await rig.note_histories()

    assert world.struck
    assert faults_of(history) == []
    assert all(isinstance(reply.payload, ChatReply) for reply in replies)
    if (fault.step, fault.kind) in COMMITTED:
        assert [runs_of(history, turn.request_id) for turn in turns] == [1, 1, 1]
    else:
        assert sum(runs_of(history, turn.request_id) for turn in turns) <= 4


@pytest.mark.parametrize("fault", MATRIX, ids=_name)
async def test_a_fault_in_one_session_does_not_hold_another_up(fault: Fault) -> None:
    async with open_rig() as rig:
        world = rig.start_runner(fault)
        turn = await rig.submit("s1", "turn")
        if fault.kind.dies:
            await world.died.wait()
            rig.start_runner()
        other = await rig.submit("s2", "other")

        reply = await rig.answer(other)
        await rig.answer(turn)
        history = await rig.note_histories()

    assert isinstance(reply.payload, ChatReply)
    assert faults_of(history) == []
    assert runs_of(history, "other") == 1


@pytest.mark.parametrize("fault", MATRIX, ids=_name)
async def test_a_retried_request_gets_the_stored_answer_through_any_fault(fault: Fault) -> None:
    async with open_rig() as rig:
        world = rig.start_runner(fault)
        first = await rig.submit("s1", "turn")
        again = await rig.submit("s1", "turn")

        if fault.kind.dies:
            await world.died.wait()
            rig.start_runner()
        answers = [await rig.answer(first), await rig.answer(again)]
        last = await rig.submit("s1", "turn")
        answers.append(await rig.answer(last))
        history = await rig.note_histories()

    assert again.known and last.known
    assert faults_of(history) == []
    assert answers[0] == answers[1] == answers[2]
    assert history.histories["s1"] == ["turn"]
