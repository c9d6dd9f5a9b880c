"""What a call over gRPC that is not answered ends with: one status and the details of one table."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import grpc
import pytest
from typing_extensions import override

from turnline.auth import AuthValidator, ValidationResult
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
from turnline.request_handler.preferences import ReplyMode
from turnline.request_handler.rig import RigOptions, TokenIsUser
from turnline.v1 import chat_service_pb2 as pb

SCOPED = RigOptions(validator=TokenIsUser())

Metadata = tuple[tuple[str, str], ...]
Method = Callable[[Served, Metadata], Awaitable[object]]

METHODS: Mapping[str, Method] = {
    "Chat": lambda served, metadata: served.stub.Chat(chat(), metadata=metadata),
    "Submit": lambda served, metadata: served.stub.Submit(submit(), metadata=metadata),
    "GetReply": lambda served, metadata: served.stub.GetReply(
        pb.GetReplyRequest(request_id="r1"), metadata=metadata
    ),
    "StreamChat": lambda served, metadata: served.stub.StreamChat(
        stream(), metadata=metadata
    ).read(),
    "Cancel": lambda served, metadata: served.stub.Cancel(
        pb.CancelRequest(request_id="r1"), metadata=metadata
    ),
}


# --- who calls ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "Bearer nobody", "Basic user-a", "user-a", "Bearer old-a"]
)
@pytest.mark.parametrize("method", METHODS)
async def test_every_method_wants_a_token(method: str, authorization: str) -> None:
    metadata = (("authorization", authorization),) if authorization else ()
    async with serving(SCOPED) as served:
        refusal = await refused(METHODS[method](served, metadata))

    assert refusal.code is grpc.StatusCode.UNAUTHENTICATED
    assert (refusal.info.reason, refusal.failure.status_code) == ("unauthenticated", 401)
    assert served.rig.envelopes == []


async def test_a_request_without_a_token_is_not_even_read() -> None:
    async with serving(SCOPED) as served:
        refusal = await refused(served.stub.Chat(chat("x" * 200_000)))

    assert refusal.code is grpc.StatusCode.UNAUTHENTICATED


class Telling(AuthValidator):
    """Accepts everybody, and keeps what it is told of where a token came from."""

    def __init__(self) -> None:
        self.told: list[object] = []

    @override
    async def validate(self, token: str, context: object = None) -> ValidationResult:
        self.told.append(context)
        return ValidationResult(is_valid=True, claims={"userId": token})


async def test_a_validator_is_told_the_surface() -> None:
    validator = Telling()
    async with serving(RigOptions(validator=validator)) as served:
        await served.stub.Chat(chat(), metadata=(("authorization", "Bearer u1"),))

    assert validator.told == [{"surface": "grpc"}]


# --- what is wrong with a request -----------------------------------------------------------------


def without_request() -> pb.ChatServiceChatRequest:
    return pb.ChatServiceChatRequest(session_id="s1")


def with_no_number() -> pb.ChatServiceChatRequest:
    request = chat()
    request.request.extra.update({"n": float("nan")})
    return request


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (without_request(), "request"),
        (chat(session_id=""), "session_id"),
        (chat(session_id="x" * 257), "session_id"),
        (chat(request_id="a\nb"), "request_id"),
        (chat(""), "prompt"),
        (with_no_number(), "extra"),
    ],
    ids=["no request", "no session", "long session", "bad id", "no prompt", "no number"],
)
async def test_the_field_at_fault_is_named(request_: pb.ChatServiceChatRequest, field: str) -> None:
    async with serving() as served:
        refusal = await refused(served.stub.Chat(request_))

    assert refusal.code is grpc.StatusCode.INVALID_ARGUMENT
    assert (refusal.field, refusal.failure.field) == (field, field)
    assert refusal.text == refusal.failure.message
    assert served.rig.envelopes == []


@pytest.mark.parametrize(
    "call",
    [
        lambda served: served.stub.GetReply(pb.GetReplyRequest()),
        lambda served: served.stub.Cancel(pb.CancelRequest()),
        lambda served: served.stub.StreamChat(pb.StreamChatRequest()).read(),
    ],
    ids=["GetReply", "Cancel", "StreamChat"],
)
async def test_a_turn_that_is_not_named_is_refused(
    call: Callable[[Served], Awaitable[object]],
) -> None:
    async with serving() as served:
        refusal = await refused(call(served))

    assert (refusal.code, refusal.field) == (grpc.StatusCode.INVALID_ARGUMENT, "request_id")


async def test_a_wait_of_less_than_nothing_is_refused() -> None:
    request = pb.GetReplyRequest(request_id="r1")
    request.wait.FromSeconds(-1)
    async with serving() as served:
        refusal = await refused(served.stub.GetReply(request))

    assert (refusal.code, refusal.field) == (grpc.StatusCode.INVALID_ARGUMENT, "wait")


async def test_a_place_that_is_none_is_refused() -> None:
    async with serving() as served:
        refusal = await refused(served.stub.StreamChat(stream(after=(1, -2))).read())

    assert (refusal.code, refusal.field) == (grpc.StatusCode.INVALID_ARGUMENT, "after")


async def test_an_id_with_another_body_is_422_in_other_words() -> None:
    async with serving() as served:
        await served.stub.Chat(chat("one", request_id="r1"))
        refusal = await refused(served.stub.Chat(chat("two", request_id="r1")))

    assert refusal.code is grpc.StatusCode.ALREADY_EXISTS
    assert (refusal.info.reason, refusal.failure.status_code) == ("request_id_reused", 422)
    assert refusal.info.metadata["retry"] == "never"
    assert refusal.info.metadata["request_id"] == "r1"


async def test_an_unknown_agent_is_refused() -> None:
    async with serving(RigOptions(knows_agent=lambda name: name != "nobody")) as served:
        refusal = await refused(served.stub.Chat(chat(agent="nobody")))

    assert (refusal.code, refusal.text) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "No agent available",
    )


async def test_too_large_a_request_is_refused() -> None:
    async with serving() as served:
        refusal = await refused(served.stub.Chat(chat("x" * 200_000)))

    assert refusal.code is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("method", ["Chat", "Submit", "StreamChat"])
async def test_where_answers_go_to_sockets_only_a_turn_is_refused(method: str) -> None:
    options = RigOptions(keeps_answers=False, mode=ReplyMode.SOCKET)
    async with serving(options) as served:
        refusal = await refused(METHODS[method](served, ()))

    assert refusal.code is grpc.StatusCode.INVALID_ARGUMENT
    assert "/ws" in refusal.text


# --- what stands in the way -----------------------------------------------------------------------


async def test_a_session_over_its_share_is_429_with_a_pause_in_other_words() -> None:
    options = RigOptions(running=False, max_messages_per_session=1)
    async with serving(options) as served:
        await served.stub.Submit(submit(request_id="r1"))
        refusal = await refused(served.stub.Submit(submit(request_id="r2")))
        unknown = await refused(served.stub.GetReply(pb.GetReplyRequest(request_id="r2")))

    assert refusal.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (refusal.info.reason, refusal.failure.status_code) == ("session_queue_full", 429)
    assert refusal.info.metadata["retry"] == "after"
    assert refusal.pause > 0
    assert int(refusal.trailing["grpc-retry-pushback-ms"]) == round(refusal.pause * 1000)
    assert unknown.code is grpc.StatusCode.NOT_FOUND


async def test_a_full_queue_is_503_with_a_pause_in_other_words() -> None:
    options = RigOptions(running=False, max_messages=1)
    async with serving(options) as served:
        await served.stub.Submit(submit(request_id="r1"))
        refusal = await refused(served.stub.Submit(submit(session_id="s2")))

    assert refusal.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (refusal.info.reason, refusal.failure.status_code) == ("queue_full", 503)
    assert refusal.pause > 0


@pytest.mark.parametrize("method", ["Chat", "Submit", "StreamChat"])
async def test_a_process_that_drains_takes_no_turn(method: str) -> None:
    async with serving() as served:
        served.rig.accepting = False
        refusal = await refused(METHODS[method](served, ()))

    assert refusal.code is grpc.StatusCode.UNAVAILABLE
    assert (refusal.info.reason, refusal.failure.status_code) == ("draining", 503)
    assert refusal.pause == 1.0


async def test_a_caller_who_waits_while_the_process_closes_is_told_to_come_back() -> None:
    async with serving() as served:
        call = asyncio.ensure_future(refused(served.stub.Chat(chat("hold"))))
        await served.rig.waiting.holds(1)
        await served.rig.waiting.close()
        refusal = await call

    assert refusal.code is grpc.StatusCode.UNAVAILABLE
    assert refusal.info.reason == "draining"
    assert refusal.info.metadata["session_id"] == "s1"
    assert refusal.info.metadata["request_id"] == served.rig.envelopes[0].request_id


async def test_no_answer_in_the_budget_is_504_and_the_turn_can_be_come_back_for() -> None:
    async with serving(RigOptions(reply_budget=0.2)) as served:
        refusal = await refused(served.stub.Chat(chat("hold")))
        minted = refusal.info.metadata["request_id"]
        waiting = asyncio.ensure_future(end_of(served, minted))
        served.rig.released.set()
        end = await waiting

    assert refusal.code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert (refusal.info.reason, refusal.failure.status_code) == ("turn_deadline_exceeded", 504)
    assert end.reply.result == "echo: hold"


async def test_a_failed_turn_ends_its_call_like_a_refusal() -> None:
    async with serving() as served:
        refusal = await refused(served.stub.Chat(chat("fail", request_id="r1")))

    assert (refusal.code, refusal.text) == (grpc.StatusCode.INTERNAL, "The agent failed")
    assert (refusal.info.reason, refusal.failure.status_code) == ("agent_failed", 500)
    assert refusal.info.metadata["request_id"] == "r1"


async def test_a_cancelled_turn_ends_its_call_as_cancelled() -> None:
    async with serving() as served:
        call = asyncio.ensure_future(refused(served.stub.Chat(chat("hold", request_id="r1"))))
        await served.rig.waiting.holds(1)
        await served.stub.Cancel(pb.CancelRequest(request_id="r1"))
        refusal = await call

    assert (refusal.code, refusal.info.reason) == (
        grpc.StatusCode.CANCELLED,
        "turn_cancelled",
    )


async def test_what_nobody_expected_is_an_internal_error_without_details() -> None:
    def broken(_: str) -> bool:
        raise RuntimeError("a password")

    async with serving(RigOptions(knows_agent=broken)) as served:
        refusal = await refused(served.stub.Chat(chat()))

    assert (refusal.code, refusal.text) == (grpc.StatusCode.INTERNAL, "Internal error")
    assert "password" not in str(refusal.status)


async def test_a_turn_that_is_not_known_cannot_be_attached_to() -> None:
    async with serving() as served:
        refusal = await refused(served.stub.StreamChat(attach("r9")).read())

    assert (refusal.code, refusal.info.reason) == (grpc.StatusCode.NOT_FOUND, "not_found")
