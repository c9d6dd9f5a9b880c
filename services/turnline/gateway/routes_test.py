"""Client sockets against a real server: opening, talking, ending."""

import asyncio
from typing import Any

import pytest
from websockets.asyncio.client import connect

from turnline.gateway.custom import RouteMessage
from turnline.gateway.rig import served
from turnline.gateway.rig_talks import Talk, over_both
from turnline.telemetry import captured_logs

TOO_LARGE = 1009


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", "Authentication token is required"),
        ("?token=", "Authentication token is required"),
        ("?token=bad", "Authentication failed"),
        ("?token=badwrong+key", "wrong key"),
        ("?token=nobody", "'userId' claim is required in token"),
    ],
)
async def test_a_socket_is_accepted_and_then_told_why_it_is_refused(
    query: str, reason: str
) -> None:
    async with served() as rig, connect(rig.url + query) as connection:
        assert await Talk(connection).close_code() == (1008, reason)


async def test_a_reason_longer_than_a_close_frame_is_cut() -> None:
    async with served() as rig, rig.socket("bad" + "x" * 500) as talk:
        assert await talk.close_code() == (1008, "x" * 123)


async def test_the_token_may_come_in_a_header_or_as_a_subprotocol() -> None:
    async with served() as rig:
        headers = {"authorization": "Bearer u"}
        async with connect(rig.url, additional_headers=headers) as connection:
            assert (await Talk(connection).ask(prompt="p", session_id="s"))["user_id"] == "u"
        async with connect(rig.url, subprotocols=["turnline.bearer", "u"]) as connection:  # type: ignore[list-item] # plain texts will do
            assert connection.subprotocol == "turnline.bearer"


async def test_a_socket_ends_when_its_token_does() -> None:
    async with served() as rig, rig.socket("u@0.1") as talk:
        assert await talk.close_code() == (4401, "token expired; reconnect with a new one")
        await rig.holds(0)


async def test_a_token_that_has_ended_opens_nothing_for_long() -> None:
    async with served() as rig, rig.socket("u@-5") as talk:
        assert (await talk.close_code())[0] == 4401


async def test_a_user_holds_so_many_sockets_and_other_users_their_own() -> None:
    async with served(max_connections_per_user=2) as rig, rig.held(), rig.held() as second:
        async with rig.socket() as third:
            assert await third.close_code() == (4429, "too many connections of this user")
        async with rig.held("other"):
            pass
        await second.leave()
        await rig.holds(1)
        async with rig.held():
            pass


async def test_no_socket_is_opened_while_draining() -> None:
    async with served() as rig:
        rig.accepting = False
        async with rig.socket() as talk:
            assert (await talk.close_code())[0] == 1012


@over_both
async def test_no_turn_is_admitted_while_draining(over: str) -> None:
    async with served(over=over) as rig, rig.held() as talk:
        rig.accepting = False

        frame = await talk.ask(request_id="r", body={"prompt": "p", "session_id": "s"})

    assert (frame["status"], frame["code"], frame["request_id"]) == ("FAILED", "draining", "r")
    assert frame["retry_after"] > 0


async def test_at_the_end_clients_are_told_to_come_back() -> None:
    async with served() as rig, rig.socket() as one, rig.socket("other") as two:
        for talk in (one, two):
            await talk.ask(route="none")
        await rig.hub.close_all(spread=0.01)
        for talk in (one, two):
            frame = await talk.hear()
            assert (frame["status"], frame["type"]) == ("RECONNECT", "SYSTEM_RESPONSE")
            assert 0.5 <= frame["retry_after"] <= 5.0
            assert await talk.close_code() == (1012, "server restarting; reconnect")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nope", "Invalid frame: not JSON"),
        ("[]", "Invalid frame: must be a JSON object"),
        ("[" * 20_000, "Invalid frame: not JSON"),
        ('{"body":{"prompt":"\\ud800","session_id":"s"}}', "Invalid frame: not JSON"),
        ("{}", "body is required"),
        ('{"body":{"prompt":"p"}}', "session_id is required"),
        (
            '{"body":{"session_id":"s"}}',
            "prompt is required unless the request carries a resume block",
        ),
        ('{"route":"nope"}', "Route 'nope' not found"),
        ('{"route":"resume"}', "request_id is required"),
        ('{"route":"cancel"}', "request_id is required"),
        (
            '{"body":{"prompt":"p","session_id":"a\\u0000b"}}',
            "session_id must not hold control characters",
        ),
    ],
)
async def test_a_wrong_frame_is_answered_and_ends_nothing(text: str, message: str) -> None:
    async with served() as rig, rig.socket() as talk:
        await talk.connection.send(text)
        refused = await talk.hear()
        queued = await talk.ask(prompt="p", session_id="s")

    assert (refused["status"], refused["message"]) == ("FAILED", message)
    assert refused["type"] == "SYSTEM_RESPONSE"
    assert queued["type"] == "CHAT_QUEUED"


@over_both
async def test_a_wrong_frame_is_answered_under_its_id(over: str) -> None:
    async with served(over=over) as rig, rig.connect() as talk:
        assert (await talk.ask(request_id="r-1", body=5))["request_id"] == "r-1"


async def test_a_binary_frame_is_answered_and_ends_nothing() -> None:
    async with served() as rig, rig.socket() as talk:
        await talk.connection.send(b"\x00\x01")
        refused = await talk.hear()
        queued = await talk.ask(prompt="p", session_id="s")

    assert refused["message"] == "Binary frames are not supported; send JSON text"
    assert queued["type"] == "CHAT_QUEUED"


async def test_too_large_a_frame_closes_its_socket_and_says_why() -> None:
    async with served(max_frame_bytes=2_000) as rig, rig.held("other") as other:
        async with rig.socket() as talk:
            await talk.connection.send("x" * 300_000)
            assert (await talk.close_code())[0] == TOO_LARGE
        await rig.holds(1)
        assert (await other.ask(prompt="p", session_id="s"))["type"] == "CHAT_QUEUED"


async def test_a_frame_of_the_largest_size_is_taken() -> None:
    async with served(max_frame_bytes=2_000) as rig, rig.socket() as talk:
        body = '{"prompt":"%s","session_id":"s"}'
        await talk.connection.send(body % ("x" * (2_000 - len(body % ""))))

        assert (await talk.hear())["type"] == "CHAT_QUEUED"


async def test_text_that_is_no_utf8_closes_its_socket() -> None:
    async with served() as rig, rig.socket() as talk:
        await talk.connection.send(b"\xff\xfe", text=True)

        assert (await talk.close_code())[0] == 1007


async def status(message: RouteMessage) -> dict[str, Any]:
    return {"up": True, "got": message}


@over_both
async def test_a_custom_route_is_answered_at_once(over: str) -> None:
    async with served({"status": status}, over=over) as rig, rig.connect() as talk:
        frame = await talk.ask(route="status", x=1)

    assert frame == {
        "status": "SUCCESS",
        "up": True,
        "got": {"message": {"route": "status", "x": 1}, "user_id": "u"},
        "type": "SYSTEM_RESPONSE",
    }


@over_both
async def test_a_slow_custom_route_holds_up_neither_chat_nor_other_routes(over: str) -> None:
    release = asyncio.Event()

    async def slow(_: RouteMessage) -> dict[str, Any]:
        await release.wait()
        return {"slow": True}

    async with served({"slow": slow, "status": status}, over=over) as rig, rig.connect() as talk:
        await talk.say(route="slow")
        assert (await talk.ask(route="status"))["up"] is True
        assert (await talk.ask(prompt="p", session_id="s"))["type"] == "CHAT_QUEUED"
        release.set()
        assert (await talk.hear())["slow"] is True


@over_both
async def test_a_custom_route_that_says_nothing_sends_nothing(over: str) -> None:
    async with (
        served({"quiet": lambda _: None, "status": status}, over=over) as rig,
        rig.connect() as talk,
    ):
        await talk.say(route="quiet")

        assert (await talk.ask(route="status"))["up"] is True


@over_both
async def test_a_custom_route_that_raises_tells_no_detail(over: str) -> None:
    def broken(_: RouteMessage) -> dict[str, Any]:
        raise ValueError("secret")

    with captured_logs():
        async with served({"broken": broken}, over=over) as rig, rig.connect() as talk:
            frame = await talk.ask(route="broken", request_id="r")

    assert (frame["status"], frame["request_id"]) == ("FAILED", "r")
    assert frame["message"] == "Route handler encountered an error"
    assert "secret" not in str(frame)


@over_both
async def test_a_client_may_have_so_many_frames_at_work_and_is_told_when_it_has_more(
    over: str,
) -> None:
    release = asyncio.Event()

    async def slow(_: RouteMessage) -> dict[str, Any]:
        await release.wait()
        return {}

    async with served({"slow": slow}, over=over) as rig, rig.connect() as talk:
        for number in range(32):
            await talk.say(route="slow", request_id=f"r{number}")
        refused = await talk.ask(route="slow", request_id="one more")
        release.set()
        answers = [await talk.hear() for _ in range(32)]

    assert (refused["request_id"], refused["code"]) == ("one more", "session_queue_full")
    assert {frame["status"] for frame in answers} == {"SUCCESS"}


async def test_a_client_that_leaves_ends_what_its_frames_began() -> None:
    ended = asyncio.Event()

    async def slow(_: RouteMessage) -> dict[str, Any]:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    async with served({"slow": slow}) as rig:
        async with rig.socket() as talk:
            await talk.say(route="slow")
            await talk.ask(route="none")
        async with asyncio.timeout(30):
            await ended.wait()
        await rig.holds(0)
        assert await rig.backends.stores.connections.connections_of("u") == ()


async def test_a_client_that_does_not_read_is_let_go_and_disturbs_no_other() -> None:
    frame = {"type": "CHAT_RESPONSE", "result": "x" * 200_000}
    with captured_logs() as logs:
        async with served(send_buffer=8) as rig, rig.held("well") as well:
            async with rig.socket("stuck", max_queue=1) as stuck:
                await stuck.ask(route="none")
                stuck.connection.transport.pause_reading()
                for number in range(100):
                    await rig.push.push("stuck", [{**frame, "request_id": f"r{number}"}])
                    await rig.push.push("well", [{"n": number}])
                    assert (await well.hear())["n"] == number
                await rig.holds(1)
                stuck.connection.transport.abort()
            assert rig.counted('frames_pushed_total{result="slow"}') > 0

    assert [record["queued"] for record in logs if record["event"] == "connection.slow"] == [9]


async def test_a_client_that_stops_reading_does_not_keep_the_server_from_ending() -> None:
    async with asyncio.timeout(30):
        async with served() as rig, rig.socket("stuck", max_queue=1) as stuck:
            await stuck.ask(route="none")
            stuck.connection.transport.pause_reading()
            for number in range(100):
                await rig.push.push("stuck", [{"n": number, "x": "y" * 200_000}])
            await rig.hub.close_all(spread=0.0)
            await rig.holds(0)
            stuck.connection.transport.abort()


async def test_sockets_and_their_frames_are_counted_and_logged() -> None:
    with captured_logs() as logs:
        async with served({"status": status}) as rig:
            async with rig.socket() as talk:
                await talk.ask(route="status")
                await talk.ask(route="nope")
                await talk.ask(request_id="r", body={"prompt": "p", "session_id": "s"})
                assert rig.counted("connections") == 1
            await rig.holds(0)
            counts = {
                series: rig.counted(
                    f'requests_total{{mode="{series[0]}",status="{series[1]}",'
                    f'surface="websocket"}}'
                )
                for series in (("custom", "200"), ("custom", "404"), ("async", "202"))
            }
            assert rig.counted("connections") == 0

    assert set(counts.values()) == {1.0}
    events = {record["event"]: record for record in logs}
    assert events["connection.closed"]["code"] == 1000
    assert events["connection.opened"]["connection_id"]
    assert (events["turn.admitted"]["surface"], events["turn.admitted"]["mode"]) == (
        "websocket",
        "async",
    )


async def test_a_refused_socket_is_logged_and_not_counted() -> None:
    with captured_logs() as logs:
        async with served() as rig, rig.socket("bad") as talk:
            await talk.close_code()
            assert rig.counted("connections") == 0

    (refused,) = [record for record in logs if record["event"] == "connection.refused"]
    assert (refused["code"], refused["reason"]) == (1008, "Authentication failed")


@over_both
async def test_what_was_held_reaches_the_next_socket(over: str) -> None:
    async with served(over=over) as rig:
        await rig.push.push_or_hold("u", [{"type": "CHAT_RESPONSE", "request_id": "r"}])
        async with rig.connect() as talk:
            assert (await talk.hear())["request_id"] == "r"
