"""POST, GET and DELETE /api/v1/chat as a client sees them."""

import asyncio

import httpx
import pytest

from turnline.errors import Code
from turnline.request_handler import ReplyMode
from turnline.request_handler.rig import Rig, RigOptions, open_rig

ASYNC = {"Prefer": "respond-async"}


async def post(rig: Rig, headers: dict[str, str], **fields: object) -> httpx.Response:
    body = {"prompt": "hello", "session_id": "s1", **fields}
    return await rig.client.post("/api/v1/chat", json=body, headers=headers)


# --- rest_sync ----------------------------------------------------------------------------------


async def test_a_sync_caller_gets_the_reply() -> None:
    async with open_rig() as rig:
        answer = await rig.chat("hello")

    body = answer.json()
    assert (answer.status_code, body["result"], body["session_id"]) == (200, "echo: hello", "s1")
    assert answer.headers["content-type"] == "application/json"
    assert body["request_id"] == rig.envelopes[0].request_id


@pytest.mark.parametrize("status", [202, 302, 404, 418, 503])
async def test_the_turns_own_status_is_the_answers(status: int) -> None:
    async with open_rig() as rig:
        answer = await rig.chat(f"status={status}")

    assert answer.status_code == status
    assert answer.json()["result"] == f"echo: status={status}"


@pytest.mark.parametrize("status", [204, 205, 304])
async def test_a_status_without_a_body_gets_none(status: int) -> None:
    async with open_rig() as rig:
        answer = await rig.chat(f"status={status}")

    assert (answer.status_code, answer.content) == (status, b"")


@pytest.mark.parametrize("status", [0, 101, 600])
async def test_a_status_http_does_not_have_is_200(status: int) -> None:
    async with open_rig() as rig:
        answer = await rig.chat(f"status={status}")

    assert answer.status_code == 200


async def test_a_failed_turn_is_a_real_status_with_detail() -> None:
    async with open_rig() as rig:
        answer = await rig.chat("fail")

    assert answer.status_code == 500
    assert answer.json()["detail"] == {
        "error": "The agent failed",
        "code": "agent_failed",
        "retry": "never",
        "session_id": "s1",
        "request_id": rig.envelopes[0].request_id,
    }


async def test_a_caller_whose_budget_is_over_gets_504_and_the_ids_to_come_back_with() -> None:
    async with open_rig(RigOptions(reply_budget=0.02)) as rig:
        answer = await rig.chat("hold")

    request_id = rig.envelopes[0].request_id
    assert answer.status_code == 504
    assert answer.json()["detail"] == {
        "error": f"No response received for request_id: {request_id}",
        "code": "turn_deadline_exceeded",
        "retry": "never",
        "session_id": "s1",
        "request_id": request_id,
    }


async def test_a_turn_given_up_by_its_caller_stops_costing() -> None:
    async with open_rig(RigOptions(reply_budget=3.0)) as rig:
        await rig.chat()

    envelope = rig.envelopes[0]
    assert envelope.deadline - envelope.enqueued_at == pytest.approx(3.0, abs=0.01)


async def test_a_sync_caller_is_told_to_come_back_when_the_process_closes() -> None:
    async with open_rig() as rig, asyncio.TaskGroup() as tasks:
        call = tasks.create_task(rig.chat("hold", request_id="r1"))
        await rig.waiting.holds(1)
        await rig.waiting.close()
        answer = await call

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["detail"]["code"] == "draining"
    assert answer.json()["detail"]["request_id"] == "r1"


async def test_no_new_turn_is_taken_while_draining() -> None:
    async with open_rig() as rig:
        rig.accepting = False
        answer = await rig.chat()

    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


async def test_an_unknown_agent_is_refused_at_the_door() -> None:
    async with open_rig(RigOptions(knows_agent=lambda name: name == "echo")) as rig:
        answer = await rig.chat(agent="nobody")

    assert answer.status_code == 400
    assert answer.json()["detail"] == {
        "error": "No agent available",
        "code": "unknown_agent",
        "retry": "never",
        "field": "agent",
        "session_id": "s1",
    }


async def test_a_full_queue_is_503_with_a_pause_and_leaves_nothing_behind() -> None:
    async with open_rig(RigOptions(max_messages=1, running=False)) as rig:
        await post(rig, ASYNC)
        answer = await post(rig, ASYNC, session_id="s2", request_id="r2")
        poll = await rig.poll("r2")

    assert (answer.status_code, answer.json()["detail"]["code"]) == (503, "queue_full")
    assert int(answer.headers["retry-after"]) >= 1
    assert poll.json()["detail"]["code"] == "not_found"


async def test_a_session_over_its_share_is_429_with_a_pause_and_leaves_others_alone() -> None:
    async with open_rig(RigOptions(max_messages_per_session=1, running=False)) as rig:
        await post(rig, ASYNC)
        answer = await post(rig, ASYNC, request_id="r2")
        other = await post(rig, ASYNC, session_id="s2", request_id="r3")
        poll = await rig.poll("r2")

    assert (answer.status_code, answer.json()["detail"]["code"]) == (429, "session_queue_full")
    assert int(answer.headers["retry-after"]) >= 1
    assert poll.json()["detail"]["code"] == "not_found"
    assert other.status_code == 202


async def test_trace_context_travels_with_the_turn() -> None:
    parent = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    async with open_rig() as rig:
        await post(rig, {"traceparent": parent})

    assert rig.envelopes[0].trace.traceparent.split("-")[1] == "a" * 32


# --- rest_async ---------------------------------------------------------------------------------


async def test_an_async_caller_gets_202_and_where_to_look() -> None:
    async with open_rig(RigOptions(mode=ReplyMode.ASYNC)) as rig:
        answer = await rig.chat("hold", request_id="r/1 ü")
        poll = await rig.client.get(answer.headers["location"])

    assert answer.status_code == 202
    assert answer.json() == {"status": "ACCEPTED", "request_id": "r/1 ü", "session_id": "s1"}
    assert "preference-applied" not in answer.headers
    assert poll.json()["detail"]["request_id"] == "r/1 ü"


async def test_a_preference_overrides_the_mode_and_is_said_to_be_applied() -> None:
    async with open_rig() as rig:
        answer = await post(rig, ASYNC, prompt="hold")

    assert (answer.status_code, answer.headers["preference-applied"]) == (202, "respond-async")


async def test_a_preferred_wait_gives_the_reply_if_it_comes_in_time() -> None:
    async with open_rig() as rig:
        answer = await post(rig, {"Prefer": "respond-async, wait=5"})

    assert (answer.status_code, answer.json()["result"]) == (200, "echo: hello")
    assert answer.headers["preference-applied"] == "respond-async, wait=5"


async def test_a_preferred_wait_ends_in_202_at_the_callers_budget() -> None:
    async with open_rig(RigOptions(reply_budget=0.02)) as rig:
        answer = await post(rig, {"Prefer": "respond-async, wait=600"}, prompt="hold")

    assert answer.status_code == 202


async def test_async_turns_get_the_whole_turn_timeout() -> None:
    async with open_rig(RigOptions(reply_budget=3.0, mode=ReplyMode.ASYNC)) as rig:
        await rig.chat("hold", request_id="r1")
        await rig.poll("r1", wait="0.01")

    envelope = rig.envelopes[0]
    assert envelope.deadline - envelope.enqueued_at == pytest.approx(60.0, abs=0.01)


async def test_socket_mode_refuses_a_post_that_asks_for_nothing_else() -> None:
    async with open_rig(RigOptions(mode=ReplyMode.SOCKET)) as rig:
        refused = await rig.chat()
        preferred = await post(rig, ASYNC)

    assert (refused.status_code, preferred.status_code) == (400, 202)
    assert refused.json()["detail"]["error"] == (
        "ASYNC mode delivers responses over the WebSocket route: connect to /ws instead"
    )


@pytest.mark.parametrize(
    ("mode", "words"), [(ReplyMode.SOCKET, "ASYNC mode"), (ReplyMode.STREAM, "STREAM responses")]
)
async def test_where_no_answer_can_be_read_every_post_is_refused_and_nothing_runs(
    mode: ReplyMode, words: str
) -> None:
    async with open_rig(RigOptions(mode=mode, keeps_answers=False)) as rig:
        refused = [
            await post(rig, headers) for headers in ({}, ASYNC, {"accept": "text/event-stream"})
        ]

    assert [answer.status_code for answer in refused] == [400] * 3
    assert {answer.json()["detail"]["error"].startswith(words) for answer in refused} == {True}
    assert rig.envelopes == []


# --- polling ------------------------------------------------------------------------------------


async def test_reading_a_reply_does_not_destroy_it() -> None:
    async with open_rig() as rig:
        first = await rig.chat(request_id="r1")
        again = [await rig.poll("r1", session_id="another") for _ in range(3)]

    assert [poll.json() for poll in again] == [first.json()] * 3


async def test_a_poll_gives_the_turns_own_status() -> None:
    async with open_rig() as rig:
        await rig.chat("fail", request_id="r1")
        await rig.chat("status=202", request_id="r2")

        assert (await rig.poll("r1")).status_code == 500
        assert (await rig.poll("r2")).status_code == 202


async def test_a_turn_that_runs_is_404_with_a_pause() -> None:
    async with open_rig(RigOptions(mode=ReplyMode.ASYNC)) as rig:
        await rig.chat("hold", request_id="r1")
        poll = await rig.poll("r1", session_id="s1")

    assert (poll.status_code, poll.headers["retry-after"]) == (404, "1")
    assert poll.json()["detail"] == {
        "error": "NOT_FOUND",
        "message": "No response message found for request_id 'r1'. "
        "The message may be unavailable. Please try again.",
        "code": "reply_not_ready",
        "retry": "after",
        "retry_after": 1,
        "request_id": "r1",
        "session_id": "s1",
    }


async def test_a_poll_may_wait_for_the_end() -> None:
    async with open_rig(RigOptions(mode=ReplyMode.ASYNC)) as rig, asyncio.TaskGroup() as tasks:
        await rig.chat("hold", request_id="r1")
        poll = tasks.create_task(rig.poll("r1", wait="5"))
        await rig.waiting.holds(1)
        rig.released.set()
        answer = await poll

    assert (answer.status_code, answer.json()["result"]) == (200, "echo: hold")


async def test_a_waiting_poll_is_let_go_when_the_process_closes() -> None:
    async with open_rig(RigOptions(mode=ReplyMode.ASYNC)) as rig, asyncio.TaskGroup() as tasks:
        await rig.chat("hold", request_id="r1")
        poll = tasks.create_task(rig.poll("r1", wait="5"))
        await rig.waiting.holds(1)
        await rig.waiting.close()
        answer = await poll

    assert answer.json()["detail"]["code"] == "reply_not_ready"


@pytest.mark.parametrize(
    ("parameters", "field", "error"),
    [
        ({}, "request_id", "request_id is required"),
        ({"request_id": ""}, "request_id", "request_id is required"),
        ({"request_id": "x" * 300}, "request_id", None),
        ({"request_id": "a\x00b"}, "request_id", None),
        ({"request_id": "r", "wait": "nan"}, "wait", None),
    ],
)
async def test_a_poll_needs_sound_parameters(
    parameters: dict[str, str], field: str, error: str | None
) -> None:
    async with open_rig() as rig:
        answer = await rig.client.get("/api/v1/chat", params={**parameters, "session_id": "s"})

    detail = answer.json()["detail"]
    assert (answer.status_code, detail["field"], detail["session_id"]) == (400, field, "s")
    assert error in (None, detail["error"])


async def test_head_answers_as_get() -> None:
    async with open_rig() as rig:
        await rig.chat(request_id="r1")
        answer = await rig.client.head("/api/v1/chat", params={"request_id": "r1"})

    assert answer.status_code == 200


# --- idempotency --------------------------------------------------------------------------------


async def test_the_same_request_again_gets_the_stored_answer() -> None:
    async with open_rig() as rig:
        first = await post(rig, {"Idempotency-Key": '"k1"'})
        second = await post(rig, {}, request_id="k1")

    assert first.json() == second.json()
    assert [envelope.request_id for envelope in rig.envelopes] == ["k1"]


async def test_the_same_request_attaches_while_the_turn_runs() -> None:
    async with open_rig() as rig, asyncio.TaskGroup() as tasks:
        calls = [tasks.create_task(rig.chat("hold", request_id="k1")) for _ in range(3)]
        await rig.waiting.holds(len(calls))
        rig.released.set()
        answers = [await call for call in calls]

    assert {answer.text for answer in answers} == {answers[0].text}
    assert len(rig.envelopes) == 1


@pytest.mark.parametrize("changed", [{"prompt": "other"}, {"session_id": "s2"}, {"agent": "b"}])
async def test_the_same_id_with_another_body_is_422(changed: dict[str, str]) -> None:
    async with open_rig() as rig:
        await post(rig, {"Idempotency-Key": "k1"})
        answer = await post(rig, {"Idempotency-Key": "k1"}, **changed)

    assert answer.status_code == 422
    assert answer.json()["detail"]["code"] == Code.REQUEST_ID_REUSED


async def test_two_different_names_for_one_turn_are_400() -> None:
    async with open_rig() as rig:
        answer = await post(rig, {"Idempotency-Key": "k1"}, request_id="k2")

    assert (answer.status_code, answer.json()["detail"]["field"]) == (400, "Idempotency-Key")
    assert rig.envelopes == []


# --- cancelling ---------------------------------------------------------------------------------


async def test_a_queued_turn_is_cancelled_and_its_caller_told() -> None:
    async with open_rig(RigOptions(mode=ReplyMode.ASYNC, running=False)) as rig:
        await rig.chat(request_id="r1")
        cancelled = await rig.client.delete("/api/v1/chat", params={"request_id": "r1"})
        poll = await rig.poll("r1")

    assert (cancelled.status_code, cancelled.json()) == (
        200,
        {"status": "CANCELLED", "request_id": "r1"},
    )
    assert (poll.status_code, poll.json()["detail"]["code"]) == (499, "turn_cancelled")


async def test_cancelling_an_ended_turn_says_so_and_keeps_the_reply() -> None:
    async with open_rig() as rig:
        await rig.chat(request_id="r1")
        cancelled = await rig.client.delete("/api/v1/chat", params={"request_id": "r1"})
        poll = await rig.poll("r1")

    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "DONE")
    assert poll.json()["result"] == "echo: hello"


async def test_an_unknown_turn_cannot_be_cancelled() -> None:
    async with open_rig() as rig:
        answer = await rig.client.delete("/api/v1/chat", params={"request_id": "nobody"})

    assert (answer.status_code, answer.json()["detail"]["code"]) == (404, "not_found")
