"""Turns over client sockets: asked, sent again, cancelled."""

import pytest

from turnline.frontdoor import Submission
from turnline.gateway.rig import BODY, places, served, start_streaming
from turnline.gateway.rig_talks import Conversation, over_both
from turnline.protocol import ChatRequest, DeliveryMode
from turnline.push import Frame


@over_both
async def test_a_chat_frame_is_queued_for_its_authenticated_user(over: str) -> None:
    async with served(over=over) as rig, rig.connect() as talk:
        queued = await talk.ask(
            route="chat", request_id="r-1", body={**BODY, "user_id": "somebody else"}
        )
        turn = await rig.take()

    assert queued == {
        "status": "SUCCESS",
        "message": "Request queued successfully",
        "user_id": "u",
        "session_id": "s",
        "request_id": "r-1",
        "type": "CHAT_QUEUED",
    }
    assert (turn.scope, turn.user_id, turn.request_id) == ("u", "u", "r-1")
    assert isinstance(turn.payload, ChatRequest)
    assert turn.payload.user_id == "u"


@over_both
async def test_turns_are_accepted_in_the_order_they_were_sent(over: str) -> None:
    async with served(over=over) as rig, rig.connect() as talk:
        for number in range(20):
            await talk.say(request_id=f"r{number}", body={"prompt": "p", "session_id": "s"})
        queued = [(await talk.hear())["request_id"] for _ in range(20)]
        taken = [(await rig.take()).request_id for _ in range(20)]

    assert queued == taken == [f"r{number}" for number in range(20)]


@over_both
async def test_a_frame_without_an_id_is_given_one(over: str) -> None:
    async with served(over=over) as rig, rig.connect() as talk:
        queued = await talk.ask(**BODY)

        assert queued["request_id"] == (await rig.take()).request_id


@over_both
async def test_the_body_may_name_the_id(over: str) -> None:
    async with served(over=over) as rig, rig.connect() as talk:
        assert (await talk.ask(body={**BODY, "request_id": "mine"}))["request_id"] == "mine"


@pytest.mark.parametrize(
    ("stream", "mode"), [(True, DeliveryMode.PUSH_STREAM), (False, DeliveryMode.PUSH)]
)
@over_both
async def test_a_frame_says_whether_it_wants_a_stream(
    stream: bool, mode: DeliveryMode, over: str
) -> None:
    async with served(over=over) as rig, rig.connect() as talk:
        await talk.ask(stream=stream, body=BODY)

        assert (await rig.take()).delivery_mode is mode


@over_both
async def test_all_sockets_of_the_user_get_the_answer(over: str) -> None:
    async with (
        served(over=over) as rig,
        rig.held() as one,
        rig.held() as two,
        rig.held("other") as other,
    ):
        await one.ask(request_id="r", body=BODY)
        await rig.reply(await rig.take(), "hello")

        expected = {
            "result": "hello",
            "session_id": "s",
            "request_id": "r",
            "status_code": 200,
            "type": "CHAT_RESPONSE",
        }
        assert [await one.hear(), await two.hear()] == [expected, expected]
        assert (await other.ask(route="none"))["status"] == "FAILED"


@over_both
async def test_the_same_id_of_two_users_names_two_turns(over: str) -> None:
    async with served(over=over) as rig, rig.held("a") as one, rig.held("b") as two:
        for talk in (one, two):
            assert (await talk.ask(request_id="r", body=BODY))["type"] == "CHAT_QUEUED"
        turns = {turn.scope: turn for turn in [await rig.take(), await rig.take()]}
        await rig.reply(turns["a"], "for a")
        await rig.reply(turns["b"], "for b")

        assert [(await one.hear())["result"], (await two.hear())["result"]] == ["for a", "for b"]


@over_both
async def test_an_id_used_for_another_body_is_refused(over: str) -> None:
    async with served(over=over) as rig, rig.connect() as talk:
        await talk.ask(request_id="r", body=BODY)

        refused = await talk.ask(request_id="r", body={**BODY, "prompt": "other"})

    assert (refused["status"], refused["code"]) == ("FAILED", "request_id_reused")
    assert refused["request_id"] == "r"


# --- sent again -----------------------------------------------------------------------------------


@over_both
async def test_a_frame_sent_again_gets_the_stored_reply_and_runs_nothing(over: str) -> None:
    async with served(over=over) as rig:
        async with rig.connect() as talk:
            await talk.ask(request_id="r", body=BODY)
            await rig.reply(await rig.take(), "hello")
            await talk.hear()
        async with rig.connect() as talk:
            queued = await talk.ask(request_id="r", body=BODY)
            answer = await talk.hear()

        assert (queued["type"], answer["type"], answer["result"]) == (
            "CHAT_QUEUED",
            "CHAT_RESPONSE",
            "hello",
        )
        assert (await rig.backends.transport.input.stats()).waiting == 0


@over_both
async def test_a_stream_asked_for_again_ends_with_its_whole_text(over: str) -> None:
    async with served(over=over) as rig:
        async with rig.connect() as talk:
            turn = await start_streaming(rig, talk)
            await rig.stream(turn, 0, "hel", "lo")
            await rig.reply(turn, "hello", count=2)
            await talk.hear_until_done()
        async with rig.connect() as talk:
            await talk.ask(request_id="r", stream=True, body=BODY)
            end = await talk.hear()

    assert (end["done"], end["result"]) == (True, "hello")


@over_both
async def test_a_frame_sent_again_from_a_new_socket_brings_a_running_stream_from_its_start(
    over: str,
) -> None:
    async with served(over=over) as rig:
        async with rig.connect() as talk:
            turn = await start_streaming(rig, talk)
            await rig.stream(turn, 0, "a", "b")
        async with rig.connect() as talk:
            await talk.ask(request_id="r", stream=True, body=BODY)
            first = [await talk.hear(), await talk.hear()]
            await rig.stream(turn, 2, "c")
            await rig.reply(turn, "abc", count=3)
            frames = [*first, *await talk.hear_until_done()]

    assert places(frames) == [0, 1, 2, "done"]


@over_both
async def test_a_frame_sent_twice_on_one_socket_repeats_nothing(over: str) -> None:
    async with served(over=over) as rig, rig.connect() as talk:
        turn = await start_streaming(rig, talk)
        await rig.stream(turn, 0, "a", "b")
        first = [await talk.hear(), await talk.hear()]
        await talk.ask(request_id="r", stream=True, body=BODY)
        await rig.stream(turn, 2, "c")
        await rig.reply(turn, "abc", count=3)
        frames = [*first, *await talk.hear_until_done()]
        after = await talk.ask(route="none")

    assert places(frames) == [0, 1, 2, "done"]
    assert after["type"] == "SYSTEM_RESPONSE"


@pytest.mark.parametrize("stream", [False, True])
@over_both
async def test_a_turn_admitted_elsewhere_is_answered_here_once(stream: bool, over: str) -> None:
    """REST asks for nothing to be pushed, so the socket follows the turn in the store."""
    async with served(over=over) as rig, rig.connect() as talk:
        await rig.admission.submit(
            Submission(
                session_id="s",
                request_id="r",
                request=ChatRequest(prompt="p"),
                delivery_mode=DeliveryMode.KEEP_STREAM if stream else DeliveryMode.KEEP,
                budget=60.0,
                scope="u",
            )
        )
        turn = await rig.take()
        queued = await talk.ask(request_id="r", stream=stream, body=BODY)
        await rig.stream(turn, 0, "hello", push=False)
        await rig.reply(turn, "hello", count=1)
        frames = await talk.hear_until_done() if stream else [await talk.hear()]
        after = await talk.ask(route="none")

    assert queued["type"] == "CHAT_QUEUED"
    assert [frame["type"] for frame in frames] == (
        ["STREAM_CHUNK", "STREAM_CHUNK"] if stream else ["CHAT_RESPONSE"]
    )
    assert after["type"] == "SYSTEM_RESPONSE"


@over_both
async def test_a_turn_that_was_pushed_and_followed_is_answered_once(over: str) -> None:
    async with served(over=over) as rig, rig.connect() as talk:
        await talk.ask(request_id="r", body=BODY)
        turn = await rig.take()
        await talk.ask(request_id="r", body=BODY)
        await rig.reply(turn)
        answer = await talk.hear()
        after = await talk.ask(route="none")

    assert (answer["type"], after["type"]) == ("CHAT_RESPONSE", "SYSTEM_RESPONSE")


# --- cancel ---------------------------------------------------------------------------------------


async def cancel(talk: Conversation, request_id: str = "r") -> Frame:
    return await talk.ask(route="cancel", request_id=request_id)


@over_both
async def test_a_queued_turn_is_cancelled(over: str) -> None:
    async with served(over=over) as rig, rig.connect() as talk:
        await talk.ask(request_id="r", body=BODY)

        cancelled = await cancel(talk)
        await talk.ask(request_id="r", body=BODY)
        answer = await talk.hear()

    assert (cancelled["status"], cancelled["state"]) == ("SUCCESS", "CANCELLED")
    assert cancelled["request_id"] == "r"
    assert (answer["code"], answer["status_code"]) == ("turn_cancelled", 499)


@over_both
async def test_a_running_turn_is_told_to_stop(over: str) -> None:
    async with served(over=over) as rig, rig.connect() as talk:
        await talk.ask(request_id="r", body=BODY)
        turn = await rig.take()
        await rig.backends.stores.sessions.begin_turn(turn.session_key, "r", lease=60.0)

        assert (await cancel(talk))["state"] == "CANCELLING"


@over_both
async def test_a_turn_that_is_over_is_not_cancelled(over: str) -> None:
    async with served(over=over) as rig, rig.held() as talk:
        await talk.ask(request_id="r", body=BODY)
        await rig.reply(await rig.take())
        await talk.hear()

        assert (await cancel(talk))["state"] == "DONE"


@over_both
async def test_only_the_users_own_turns_can_be_cancelled(over: str) -> None:
    async with served(over=over) as rig, rig.connect() as talk, rig.connect("other") as other:
        await talk.ask(request_id="r", body=BODY)

        foreign, unknown = await cancel(other), await cancel(other, "never")

        assert foreign["status"] == "FAILED"
        assert {**foreign, "request_id": "never"} == unknown
        assert (await rig.take()).request_id == "r"
