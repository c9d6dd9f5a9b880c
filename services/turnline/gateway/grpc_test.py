"""Connections over gRPC: what differs from a WebSocket is how they begin and how they end."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import grpc.aio
import pytest
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from typing_extensions import override

from turnline.errors import StoreUnavailableError
from turnline.gateway.custom import RouteMessage
from turnline.gateway.rig import BODY, Served, served
from turnline.gateway.rig_talks import GrpcTalk
from turnline.protocol.clock import SystemClock
from turnline.store import Connection
from turnline.store.memory import MemoryConnectionOptions, MemoryConnectionStore
from turnline.telemetry import captured_logs
from turnline.v1 import gateway_service_pb2 as pb


async def details(talk: GrpcTalk) -> tuple[str, float | None]:
    """The code a connection was ended with, and the pause to keep; None if none was said."""
    trailing = dict(await talk.call.trailing_metadata())
    raw = trailing["grpc-status-details-bin"]
    info, retry, pause = ErrorInfo(), RetryInfo(), None
    for detail in Status.FromString(raw if isinstance(raw, bytes) else b"").details:
        detail.Unpack(info)
        if detail.Unpack(retry):
            pause = retry.retry_delay.ToMilliseconds() / 1000
    return info.reason, pause


async def opened(talk: GrpcTalk) -> None:
    """Wait until frames can be pushed to it."""
    await talk.ask(route="no such route")


# --- how they begin -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("", "Authentication token is required"),
        ("bad", "Authentication failed"),
        ("badwrong key", "wrong key"),
        ("nobody", "'userId' claim is required in token"),
    ],
)
async def test_without_a_good_token_there_is_no_connection(token: str, reason: str) -> None:
    with captured_logs() as logs:
        async with served(over="grpc") as rig, rig.call(token) as talk:
            assert await talk.ended() == (grpc.StatusCode.UNAUTHENTICATED, reason)
            assert rig.hub.count == 0

    (refused,) = [record for record in logs if record["event"] == "connection.refused"]
    assert (refused["code"], refused["reason"]) == (1008, reason)


async def test_a_client_learns_that_it_is_connected_before_any_frame() -> None:
    async with served(over="grpc") as rig, rig.call() as talk:
        async with asyncio.timeout(30):
            await talk.call.initial_metadata()
        await rig.holds(1)


async def test_a_user_holds_so_many_connections_of_both_kinds_together() -> None:
    async with (
        served(over="grpc", max_connections_per_user=2) as rig,
        rig.socket() as one,
        rig.call() as two,
    ):
        await one.ask(route="none")
        await opened(two)
        async with rig.call() as third:
            ended = await third.ended()

    assert ended == (grpc.StatusCode.RESOURCE_EXHAUSTED, "too many connections of this user")


async def test_no_connection_is_opened_while_draining() -> None:
    async with served(over="grpc") as rig:
        rig.accepting = False
        async with rig.call() as talk:
            code, _ = await talk.ended()
            reason, pause = await details(talk)

    assert (code, reason, pause) == (grpc.StatusCode.UNAVAILABLE, "draining", 1.0)


async def test_connections_opened_at_once_are_each_their_own_users() -> None:
    async with served(over="grpc") as rig, AsyncExitStack() as stack:
        talks = {
            f"u{number}": await stack.enter_async_context(rig.call(f"u{number}"))
            for number in range(10)
        }
        async with asyncio.TaskGroup() as tasks:
            queued = {
                user: tasks.create_task(talk.ask(request_id="r", body=BODY))
                for user, talk in talks.items()
            }

    assert {user: task.result()["user_id"] for user, task in queued.items()} == {
        user: user for user in talks
    }


# --- what goes over them --------------------------------------------------------------------------


async def test_what_is_pushed_to_a_user_reaches_connections_of_both_kinds() -> None:
    async with served(over="grpc") as rig, rig.call() as one, rig.socket() as two:
        await opened(one)
        await two.ask(route="none")
        frame = {"n": 1, "deep": {"list": [None, True, 2.5, "é"]}}

        await rig.push.push("u", [frame])

        assert [await one.hear(), await two.hear()] == [frame, frame]


async def test_what_was_held_reaches_the_next_connection() -> None:
    async with served(over="grpc") as rig:
        await rig.push.push_or_hold("u", [{"type": "CHAT_RESPONSE", "request_id": "r"}])
        async with rig.call() as talk:
            assert (await talk.hear())["request_id"] == "r"


async def test_a_frame_that_is_no_json_is_answered_and_ends_nothing() -> None:
    async with served(over="grpc") as rig, rig.call() as talk:
        request = pb.ConnectRequest()
        request.frame.update({"prompt": float("nan")})
        await talk.call.write(request)
        refused = await talk.hear()
        queued = await talk.ask(**BODY)

    assert (refused["status"], refused["code"]) == ("FAILED", "invalid_request")
    assert queued["type"] == "CHAT_QUEUED"


async def test_a_frame_that_says_nothing_is_answered() -> None:
    async with served(over="grpc") as rig, rig.call() as talk:
        await talk.call.write(pb.ConnectRequest())

        assert (await talk.hear())["message"] == "body is required"


async def test_what_grpc_does_not_carry_is_said_in_its_place() -> None:
    async with served(over="grpc") as rig, rig.call() as talk:
        await opened(talk)
        await rig.push.push("u", [{"n": 2**60}, {"n": 1}])
        instead, after = await talk.hear(), await talk.hear()

    assert (instead["status"], instead["code"]) == ("FAILED", "internal")
    assert after == {"n": 1}


async def test_its_frames_are_counted_as_its_own() -> None:
    with captured_logs() as logs:
        async with served(over="grpc") as rig, rig.call() as talk:
            await talk.ask(request_id="r", body=BODY)
            series = 'requests_total{mode="async",status="202",surface="grpc"}'
            assert rig.counted(series) == 1
            assert rig.counted("connections") == 1

    (admitted,) = [record for record in logs if record["event"] == "turn.admitted"]
    assert (admitted["surface"], admitted["mode"]) == ("grpc", "async")


# --- how they end ---------------------------------------------------------------------------------


async def gone(rig: Served) -> None:
    """Wait until the gateway has let go of its connections, and see that nothing is left."""
    await rig.holds(0)
    async with asyncio.timeout(30):
        while await rig.backends.stores.connections.connections_of("u"):  # noqa: ASYNC110 - untold
            await asyncio.sleep(0.005)


async def test_a_client_that_has_said_its_last_frame_ends_it_well() -> None:
    async with served(over="grpc") as rig, rig.call() as talk:
        await opened(talk)
        await talk.leave()

        assert await talk.ended() == (grpc.StatusCode.OK, "")
        await gone(rig)


async def test_a_client_that_goes_ends_what_its_frames_began() -> None:
    ended = asyncio.Event()

    async def slow(_: RouteMessage) -> dict[str, Any]:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    async with served({"slow": slow}, over="grpc") as rig:
        async with rig.call() as talk:
            await talk.say(route="slow")
            await opened(talk)
        async with asyncio.timeout(30):
            await ended.wait()
        await gone(rig)


@pytest.mark.parametrize("token", ["u@0.2", "u@-5"])
async def test_it_ends_when_its_token_does(token: str) -> None:
    async with served(over="grpc") as rig, rig.call(token) as talk:
        ended = await talk.ended()
        await gone(rig)

    assert ended == (
        grpc.StatusCode.UNAUTHENTICATED,
        "token expired; reconnect with a new one",
    )


async def test_too_large_a_frame_ends_it() -> None:
    async with served(over="grpc", max_frame_bytes=2_000) as rig, rig.call() as talk:
        await talk.say(prompt="x" * 3_000)
        code, text = await talk.ended()
        await gone(rig)

    assert (code, text) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "frame over 2000 bytes")


async def test_at_the_end_clients_are_told_to_come_back() -> None:
    async with served(over="grpc") as rig, rig.call() as talk:
        await opened(talk)
        await rig.hub.close_all(spread=0.01)
        frame = await talk.hear()
        code, _ = await talk.ended()
        reason, pause = await details(talk)

    assert (frame["status"], frame["type"]) == ("RECONNECT", "SYSTEM_RESPONSE")
    assert 0.5 <= frame["retry_after"] <= 5.0
    assert (code, reason, pause) == (grpc.StatusCode.UNAVAILABLE, "draining", 1.0)


async def test_a_client_that_does_not_read_is_let_go_and_disturbs_no_other() -> None:
    frame = {"type": "CHAT_RESPONSE", "result": "x" * 500_000}
    with captured_logs() as logs:
        async with (
            served(over="grpc", send_buffer=8) as rig,
            rig.call("well") as well,
            rig.call("stuck") as stuck,
        ):
            await opened(well)
            await opened(stuck)
            for number in range(100):
                await rig.push.push("stuck", [{**frame, "request_id": f"r{number}"}])
                await rig.push.push("well", [{"n": number}])
                assert (await well.hear())["n"] == number
            await rig.holds(1)
            code, text = await stuck.ended()

    assert (code, text) == (grpc.StatusCode.ABORTED, "too slow; reconnect and resume")
    assert [record["event"] for record in logs if record["event"] == "connection.slow"] != []


class Away(MemoryConnectionStore):
    """Records nothing."""

    @override
    async def add(self, connection: Connection) -> None:
        raise StoreUnavailableError("No answer")


async def test_a_store_that_is_away_at_connect_ends_connections_of_both_kinds() -> None:
    store = Away(MemoryConnectionOptions(), SystemClock())
    async with served(over="grpc", connections=store) as rig:
        async with rig.call() as talk:
            ended = await talk.ended()
            reason, pause = await details(talk)
        async with rig.socket() as socket:
            closed = await socket.close_code()
        await rig.holds(0)

    assert ended == (grpc.StatusCode.UNAVAILABLE, "No answer")
    assert (reason, pause) == ("store_unavailable", 1.0)
    assert closed == (1013, "No answer")
