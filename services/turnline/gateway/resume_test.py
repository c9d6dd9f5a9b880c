"""Turns resumed over client sockets."""

import asyncio

import pytest

from turnline.gateway.rig import places, served, start_streaming
from turnline.gateway.rig_talks import Conversation, over_both
from turnline.push import Frame
from turnline.telemetry import captured_logs


async def resume(talk: Conversation, after: str = "", request_id: str = "r") -> Frame:
    return await talk.ask(route="resume", request_id=request_id, body={"after": after})


@over_both
async def test_a_resume_brings_everything_behind_a_position(over: str) -> None:
    async with served(over=over) as rig:
        async with rig.connect() as talk:
            turn = await start_streaming(rig, talk)
            await rig.stream(turn, 0, "a", "b", "c")
        async with rig.connect() as talk:
            begun = await resume(talk, "1-0")
            first = [await talk.hear(), await talk.hear()]
            await rig.stream(turn, 3, "d")
            await rig.reply(turn, "abcd", count=4)
            frames = [*first, *await talk.hear_until_done()]

    assert begun == {
        "status": "SUCCESS",
        "state": "RESUMING",
        "after": "1-0",
        "session_id": "s",
        "request_id": "r",
        "type": "SYSTEM_RESPONSE",
    }
    assert places(frames) == [1, 2, 3, "done"]
    assert "result" not in frames[-1]


@over_both
async def test_a_resume_of_a_turn_that_is_over_brings_the_rest_and_the_end(over: str) -> None:
    async with served(over=over) as rig, rig.connect() as talk:
        turn = await start_streaming(rig, talk)
        await rig.stream(turn, 0, "a", "b")
        await rig.reply(turn, "ab", count=2)
        await talk.hear_until_done()

        await resume(talk, "1-0")
        rest = await talk.hear_until_done()
        await resume(talk, "1-1")
        end = await talk.hear_until_done()

    assert (places(rest), places(end)) == ([1, "done"], ["done"])


@over_both
async def test_a_resume_from_the_beginning_brings_it_all(over: str) -> None:
    async with served(over=over) as rig, rig.connect() as talk:
        turn = await start_streaming(rig, talk)
        await rig.stream(turn, 0, "a", "b")
        await rig.reply(turn, "ab", count=2)
        await talk.hear_until_done()

        await resume(talk)

        assert places(await talk.hear_until_done()) == [0, 1, "done"]


async def test_a_resume_is_told_what_is_no_longer_kept() -> None:
    async with served() as rig, rig.socket() as talk:
        turn = await start_streaming(rig, talk)
        await rig.stream(turn, 0, "a", push=False)
        await rig.stream(turn, 4, "e", push=False)
        await resume(talk, "1-0")
        frames = [await talk.hear(), await talk.hear()]
        await rig.reply(turn, "abcde", count=5)
        frames += await talk.hear_until_done()
        gaps = rig.counted("stream_gaps_total")

    assert places(frames) == ["gap", 4, "done"]
    assert frames[0]["event"] == {"type": "gap", "first": 1, "last": 3}
    assert frames[-1]["result"] == "abcde"
    assert gaps == 1


@over_both
async def test_a_resume_that_begins_while_frames_are_pushed_loses_and_repeats_none(
    over: str,
) -> None:
    count = 400
    async with served(over=over) as rig:
        async with rig.connect() as talk:
            turn = await start_streaming(rig, talk)
            await rig.stream(turn, 0, "x")

        async def speak() -> None:
            for index in range(1, count):
                await rig.stream(turn, index, f"{index} ")
                await asyncio.sleep(0)
            await rig.reply(turn, "all", count=count)

        async with rig.held() as talk, asyncio.TaskGroup() as tasks:
            tasks.create_task(speak())
            await talk.say(route="resume", request_id="r", body={"after": "1-0"})
            while (await talk.hear()).get("state") != "RESUMING":
                pass
            frames = await talk.hear_until_done()
            after = await talk.ask(route="none")

    assert places(frames) == [*range(1, count), "done"]
    assert after["type"] == "SYSTEM_RESPONSE"


@over_both
async def test_only_the_users_own_turns_can_be_resumed(over: str) -> None:
    async with served(over=over) as rig, rig.connect() as talk, rig.connect("other") as other:
        await start_streaming(rig, talk)

        foreign = await resume(other)
        unknown = await resume(other, request_id="never")

    assert foreign["status"] == "FAILED"
    assert {**foreign, "request_id": "never"} == unknown


@pytest.mark.parametrize("after", ["x", "1", "1-x", 5, True, [1], {"a": 1}, "9" * 50 + "-0"])
@over_both
async def test_a_position_that_is_none_is_refused(after: object, over: str) -> None:
    async with served(over=over) as rig, rig.connect() as talk:
        await start_streaming(rig, talk)
        refused = await talk.ask(route="resume", request_id="r", body={"after": after})

    assert (refused["status"], refused["field"]) == ("FAILED", "after")


@over_both
async def test_a_turn_is_resumed_once_at_a_time(over: str) -> None:
    async with served(over=over) as rig, rig.connect() as talk:
        await start_streaming(rig, talk)
        await resume(talk)

        assert (await resume(talk))["message"] == "This turn is being resumed already"


async def test_a_resume_that_hears_nothing_for_long_is_let_go_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("turnline.gateway.wiring.IDLE_SECONDS", 0.05)
    with captured_logs() as logs:
        async with served() as rig, rig.socket() as talk:
            turn = await start_streaming(rig, talk)
            await resume(talk)
            over = await talk.hear()
            await rig.stream(turn, 0, "a")
            pushed = await talk.hear()

    assert (over["status"], over["message"], over["retry"]) == (
        "FAILED",
        "Stream timed out",
        "after",
    )
    assert pushed["index"] == 0
    assert "stream.idle" in {record["event"] for record in logs}


@over_both
async def test_a_resume_goes_as_fast_as_its_client_reads(over: str) -> None:
    async with served(send_buffer=4, over=over) as rig, rig.connect() as talk:
        turn = await start_streaming(rig, talk)
        await rig.stream(turn, 0, *("x" * 40_000 for _ in range(100)), push=False)
        await rig.reply(turn, "all", count=100)
        assert (await talk.hear())["event"]["type"] == "gap"
        assert (await talk.hear())["done"]

        await resume(talk)

        assert places(await talk.hear_until_done()) == [*range(100), "done"]


@over_both
async def test_a_client_that_leaves_ends_its_resumes(over: str) -> None:
    async with served(over=over) as rig:
        async with rig.connect() as talk:
            await start_streaming(rig, talk)
            await resume(talk)
        await rig.holds(0)
