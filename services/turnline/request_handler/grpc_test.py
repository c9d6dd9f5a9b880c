"""Chat over gRPC: every method, by a real client of a real server."""

import asyncio

import grpc

from turnline.protocol import DeliveryMode, TraceContext
from turnline.request_handler.grpc_rig import (
    Served,
    attach,
    chat,
    end_of,
    refused,
    serving,
    stream,
    submit,
)
from turnline.request_handler.rig import RigOptions, TokenIsUser
from turnline.telemetry import captured_logs
from turnline.v1 import chat_service_pb2 as pb

ALICE = (("authorization", "Bearer user-alice"),)
BOB = (("authorization", "Bearer user-bob"),)
SCOPED = RigOptions(validator=TokenIsUser())


def counted(served: Served) -> set[str]:
    """The lines of `requests_total`, without its prefix."""
    lines = served.rig.metrics.render()[0].decode().splitlines()
    prefix = "turnline_requests_total"
    return {line[len(prefix) :] for line in lines if line.startswith(prefix + "{")}


# --- waiting for an answer ------------------------------------------------------------------------


async def test_chat_gives_the_end_of_its_turn() -> None:
    async with serving() as served:
        answer = await served.stub.Chat(chat("hello", request_id="r1"))

    assert (answer.end.request_id, answer.end.session_id) == ("r1", "s1")
    assert (answer.end.status_code, answer.end.attempt) == (200, 1)
    assert answer.end.reply.result == "echo: hello"


async def test_a_status_that_is_no_failure_is_answered() -> None:
    async with serving() as served:
        answer = await served.stub.Chat(chat("status=202"))

    assert answer.end.status_code == 202


async def test_an_id_is_minted_for_whoever_brings_none() -> None:
    async with serving() as served:
        first = await served.stub.Chat(chat())
        second = await served.stub.Chat(chat())

    assert len({first.end.request_id, second.end.request_id, ""}) == 3


async def test_a_large_request_is_read_like_a_small_one() -> None:
    async with serving() as served:
        request = chat("x" * 50_000)
        request.request.extra.update({"deep": {"list": [1, None, 2.5]}})
        answer = await served.stub.Chat(request)

    [envelope] = served.rig.envelopes
    assert answer.end.reply.result == "echo: " + "x" * 50_000
    assert getattr(envelope.payload, "extra", None) == {"deep": {"list": [1, None, 2.5]}}


# --- coming back for it ---------------------------------------------------------------------------


async def test_a_turn_is_submitted_and_its_end_waited_for() -> None:
    async with serving() as served:
        admitted = await served.stub.Submit(submit("hold", request_id="r1"))
        pending = await served.stub.GetReply(pb.GetReplyRequest(request_id="r1"))
        waiting = asyncio.ensure_future(end_of(served, "r1"))
        await served.rig.waiting.holds(1)
        served.rig.released.set()
        end = await waiting

    assert admitted == pb.SubmitResponse(request_id="r1", session_id="s1", known=False)
    assert pending.pending == pb.PendingTurn(request_id="r1", session_id="s1")
    assert end.reply.result == "echo: hold"


async def test_a_wait_that_is_over_tells_that_the_turn_is_pending() -> None:
    async with serving() as served:
        await served.stub.Submit(submit("hold", request_id="r1"))
        request = pb.GetReplyRequest(request_id="r1")
        request.wait.FromMilliseconds(50)
        found = await served.stub.GetReply(request)

    assert found.pending.session_id == "s1"


async def test_reading_an_end_leaves_it_there() -> None:
    async with serving() as served:
        await served.stub.Chat(chat(request_id="r1"))
        reads = [await end_of(served, "r1", wait=0.0) for _ in range(3)]

    assert [read.reply.result for read in reads] == ["echo: hello"] * 3


async def test_the_end_of_a_failed_turn_is_read_like_any_other() -> None:
    async with serving() as served:
        await served.stub.Submit(submit("fail", request_id="r1"))
        end = await end_of(served, "r1")

    assert end.status_code == 500
    assert (end.failure.code, end.failure.message) == ("agent_failed", "The agent failed")


# --- cancelling -----------------------------------------------------------------------------------


async def test_a_queued_turn_is_cancelled_and_one_that_ended_is_not() -> None:
    async with serving() as served:
        await served.stub.Submit(submit("hold", request_id="r1"))
        await served.stub.Chat(chat(request_id="r2"))
        states = [
            (await served.stub.Cancel(pb.CancelRequest(request_id=name))).state
            for name in ("r1", "r2")
        ]
        end = await end_of(served, "r1")

    assert states == [pb.TURN_STATE_QUEUED, pb.TURN_STATE_DONE]
    assert end.failure.code == "turn_cancelled"


# --- one turn a name ------------------------------------------------------------------------------


async def test_the_same_request_id_is_one_turn_however_often_it_is_sent() -> None:
    async with serving() as served:
        first = await served.stub.Chat(chat(request_id="r1"))
        again = await served.stub.Chat(chat(request_id="r1"))
        admitted = await served.stub.Submit(submit(request_id="r1"))

    assert again == first
    assert admitted.known
    assert len(served.rig.envelopes) == 1


async def test_a_turn_sent_over_rest_is_known_over_grpc() -> None:
    body = {
        "prompt": "hello",
        "session_id": "s1",
        "request_id": "r1",
        "agent": "echo",
        "files": [{"file_data": "aGk=", "name": "a.txt", "mime_type": "text/plain"}],
        "resume": {"decisions": [{"id": "d1", "status": "approved", "payload": {"a": 1}}]},
        "more": [1, {"x": None}],
    }
    async with serving() as served:
        overt = await served.rig.client.post("/api/v1/chat", json=body)
        request = chat(request_id="r1", agent="echo")
        request.request.files.add(data="aGk=", name="a.txt", mime_type="text/plain")
        decision = request.request.resume.decisions.add(id="d1", status="DECISION_STATUS_APPROVED")
        decision.payload.struct_value.update({"a": 1})
        request.request.extra.update({"more": [1, {"x": None}]})
        answer = await served.stub.Chat(request)

    assert overt.json()["result"] == answer.end.reply.result
    assert len(served.rig.envelopes) == 1


async def test_callers_of_one_id_at_once_share_a_turn() -> None:
    async with serving() as served, asyncio.TaskGroup() as tasks:
        calls = [
            tasks.create_task(asyncio.wait_for(served.stub.Chat(chat("hold", request_id="r1")), 20))
            for _ in range(5)
        ]
        await served.rig.waiting.holds(5)
        served.rig.released.set()

    assert {call.result().end.reply.result for call in calls} == {"echo: hold"}
    assert len(served.rig.envelopes) == 1


# --- whose turn -----------------------------------------------------------------------------------


async def test_the_user_is_the_scope_whatever_the_request_says() -> None:
    async with serving(SCOPED) as served:
        await served.stub.Chat(chat(user_id="bob"), metadata=ALICE)

    [envelope] = served.rig.envelopes
    assert (envelope.scope, envelope.user_id) == ("alice", "alice")


async def test_another_users_turn_looks_like_one_that_never_was() -> None:
    async with serving(SCOPED) as served:
        await served.stub.Chat(chat(request_id="theirs"), metadata=ALICE)
        answers = []
        for name in ("theirs", "nobodys"):
            asked = pb.GetReplyRequest(request_id=name)
            cancelled = pb.CancelRequest(request_id=name)
            answers.append(
                [
                    await refused(served.stub.GetReply(asked, metadata=BOB)),
                    await refused(served.stub.Cancel(cancelled, metadata=BOB)),
                    await refused(served.stub.StreamChat(attach(name), metadata=BOB).read()),
                ]
            )

    theirs, nobodys = answers
    assert {refusal.code for refusal in theirs} == {grpc.StatusCode.NOT_FOUND}
    assert [(r.text, r.failure) for r in theirs] == [(r.text, r.failure) for r in nobodys]
    assert {refusal.info.reason for refusal in theirs} == {"not_found"}


async def test_two_users_may_use_one_name() -> None:
    async with serving(SCOPED) as served:
        for metadata, prompt in ((ALICE, "one"), (BOB, "two")):
            answer = await served.stub.Chat(chat(prompt, request_id="r1"), metadata=metadata)
            assert answer.end.reply.result == f"echo: {prompt}"


async def test_callers_at_once_are_each_their_own_user() -> None:
    users = [f"u{number}" for number in range(20)]
    async with serving(SCOPED) as served, asyncio.TaskGroup() as tasks:

        async def ask(user: str) -> str:
            metadata = (("authorization", f"Bearer user-{user}"),)
            answer = await served.stub.Chat(chat(user, request_id="r1"), metadata=metadata)
            return answer.end.reply.result

        asked = {user: tasks.create_task(ask(user)) for user in users}

    assert {user: task.result() for user, task in asked.items()} == {
        user: f"echo: {user}" for user in users
    }
    scopes = {envelope.scope: envelope.payload for envelope in served.rig.envelopes}
    assert {scope: getattr(payload, "prompt", "") for scope, payload in scopes.items()} == {
        user: user for user in users
    }


# --- callers who go -------------------------------------------------------------------------------


async def test_a_turn_outlives_its_callers_deadline() -> None:
    async with serving() as served:
        refusal = await refused(served.stub.Chat(chat("hold", request_id="r1"), timeout=0.2))
        await served.rig.waiting.holds(0)
        served.rig.released.set()
        end = await end_of(served, "r1")

    assert refusal.code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert end.reply.result == "echo: hold"
    assert '{mode="rest_sync",status="499",surface="grpc"} 1.0' in counted(served)


async def test_a_turn_outlives_a_caller_who_cancels_the_call() -> None:
    async with serving() as served:
        call = served.stub.Chat(chat("hold", request_id="r1"))
        await served.rig.waiting.holds(1)
        call.cancel()
        await served.rig.waiting.holds(0)
        served.rig.released.set()
        end = await end_of(served, "r1")

    assert end.reply.result == "echo: hold"


# --- what it leaves -------------------------------------------------------------------------------


async def test_calls_are_counted_by_mode_and_status() -> None:
    async with serving(RigOptions(validator=TokenIsUser(), reply_budget=0.2)) as served:
        stub = served.stub
        await stub.Chat(chat(request_id="r1"), metadata=ALICE)
        await stub.Submit(submit(request_id="r2"), metadata=ALICE)
        await refused(stub.Chat(chat("other", request_id="r1"), metadata=ALICE))
        await refused(stub.Chat(chat("fail"), metadata=ALICE))
        await refused(stub.Chat(chat("hold"), metadata=ALICE))
        await refused(stub.Chat(chat()))
        await refused(stub.GetReply(pb.GetReplyRequest(request_id="r9"), metadata=ALICE))
        await stub.Cancel(pb.CancelRequest(request_id="r1"), metadata=ALICE)
        _ = [item async for item in stub.StreamChat(stream("x"), metadata=ALICE)]
        _ = [item async for item in stub.StreamChat(attach("r1"), metadata=ALICE)]

    assert counted(served) == {
        '{mode="rest_sync",status="200",surface="grpc"} 1.0',
        '{mode="rest_async",status="202",surface="grpc"} 1.0',
        '{mode="rest_sync",status="422",surface="grpc"} 1.0',
        '{mode="rest_sync",status="500",surface="grpc"} 1.0',
        '{mode="rest_sync",status="504",surface="grpc"} 1.0',
        '{mode="rest_sync",status="401",surface="grpc"} 1.0',
        '{mode="read",status="404",surface="grpc"} 1.0',
        '{mode="cancel",status="200",surface="grpc"} 1.0',
        '{mode="stream",status="200",surface="grpc"} 1.0',
        '{mode="resume",status="200",surface="grpc"} 1.0',
    }


async def test_an_admitted_turn_is_logged_once_and_without_its_prompt() -> None:
    async with serving() as served:
        with captured_logs() as records:
            await served.stub.Chat(chat("a secret prompt", request_id="r1"))
            await served.stub.Chat(chat("a secret prompt", request_id="r1"))

    [admitted] = [record for record in records if record["event"] == "turn.admitted"]
    assert (admitted["request_id"], admitted["surface"], admitted["mode"]) == (
        "r1",
        "grpc",
        "rest_sync",
    )
    assert "secret" not in repr(records)


async def test_a_trace_goes_on_with_the_turn() -> None:
    parent = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    async with serving() as served:
        await served.stub.Chat(chat(), metadata=(("traceparent", parent), ("tracestate", "v=1")))

    assert served.rig.envelopes[0].trace == TraceContext(traceparent=parent, tracestate="v=1")


async def test_chunks_are_asked_for_only_where_they_are_read() -> None:
    async with serving() as served:
        await served.stub.Chat(chat("x"))
        _ = [item async for item in served.stub.StreamChat(stream("x"))]

    assert [envelope.delivery_mode for envelope in served.rig.envelopes] == [
        DeliveryMode.KEEP,
        DeliveryMode.KEEP_STREAM,
    ]
