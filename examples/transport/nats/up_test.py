"""The example does what its README says."""

from pathlib import Path

from transport.common.checks import answers, printed_by, stopped, up

HERE = Path(__file__).absolute().parent


async def test_it_answers_over_rest_and_a_socket_and_leaves_nothing_behind() -> None:
    async with up(HERE) as (process, said):
        answer, frames = await answers(said)
        streams = await printed_by(HERE / "streams.py", said["nats"])
        code = await stopped(process)

    assert answer.status_code == 200
    assert "runner" in answer.json()["result"]
    assert ["CHAT_QUEUED" in frames[0], "CHAT_RESPONSE" in frames[1]] == [True, True]
    assert streams.count("0 messages") == 4
    assert code == 0
