"""Messages that others put straight on the streams, and odd uses of a queue."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from turnline.protocol import ChatRequest
from turnline.protocol.clock import SystemClock
from turnline.protocol.codec import encode
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.nats import NatsServer
from turnline.transport import Delivery
from turnline.transport.nats import NatsTransport
from turnline.transport.nats.harness import CALM_SECONDS, api_of, options_for
from turnline.transport.nats.jetstream import JetStream


@pytest.fixture
async def transport(server: NatsServer) -> AsyncIterator[NatsTransport]:
    options = replace(options_for(server.url), ack_wait=5.0)
    async with NatsTransport(options, SystemClock()) as transport:
        yield transport


@pytest.fixture
async def api(server: NatsServer) -> AsyncIterator[JetStream]:
    async with api_of(server.url) as api:
        yield api


async def take(transport: NatsTransport, count: int) -> list[str]:
    found = []
    async with transport.input.consumer() as reader, asyncio.timeout(30):
        for _ in range(count):
            delivery = await reader.receive()
            found.append(delivery.envelope.request_id)
            await delivery.ack()
    return found


async def test_a_plain_json_body_is_a_request(transport: NatsTransport, api: JetStream) -> None:
    body = {"request_id": "r", "session_id": "s", "prompt": "hello", "user_id": "u"}
    await api.place(f"{transport.input.options.prefix}.0.s", json.dumps(body).encode())

    async with transport.input.consumer() as reader, asyncio.timeout(30):
        envelope = (await reader.receive()).envelope

    assert (envelope.request_id, envelope.session_id, envelope.user_id) == ("r", "s", "u")
    assert isinstance(envelope.payload, ChatRequest) and envelope.payload.prompt == "hello"


async def test_headers_of_the_guide_are_read(transport: NatsTransport, api: JetStream) -> None:
    body = {"session_id": "s", "prompt": "hello"}
    headers = {"request_id": "from-header", "Ak-Group-Id": "s", "Nats-Msg-Id": "from-header"}
    await api.place(f"{transport.input.options.prefix}.0.s", json.dumps(body).encode(), headers)

    assert await take(transport, 1) == ["from-header"]


@pytest.mark.parametrize("tail", ["9999.s", "x", "0.s.t.u", "0.ünï"])
async def test_any_subject_of_the_stream_is_read_in_its_order(
    transport: NatsTransport, api: JetStream, tail: str
) -> None:
    subject = f"{transport.input.options.prefix}.{tail}"
    names = [f"turn-{number}" for number in range(5)]
    for name in names:
        await api.place(subject, encode(request("session", name)))

    assert await take(transport, 5) == names
    assert (await transport.input.stats()).waiting == 0


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"prompt": "no ids"}', "request_id"),
        (b"\x0a\x04turn", ""),
        (b"", ""),
    ],
    ids=["no-ids", "half-an-envelope", "empty"],
)
async def test_what_is_no_envelope_is_kept_with_its_reason_and_harms_nobody(
    transport: NatsTransport, api: JetStream, raw: bytes, reason: str
) -> None:
    prefix = transport.input.options.prefix
    await api.place(f"{prefix}.0.bad", raw)
    await api.place(f"{prefix}.0.bad", encode(request("bad", "behind-it")))
    await transport.input.send(request("other", "beside-it"))

    assert sorted(await take(transport, 2)) == ["behind-it", "beside-it"]

    (letter,) = await transport.input.dead_letters.list()
    assert letter.raw == raw and letter.envelope is None
    assert letter.reason and reason in letter.reason


async def test_a_message_as_large_as_the_server_takes_is_kept_whole(
    transport: NatsTransport, api: JetStream
) -> None:
    raw = b"\xff" * 1_048_576
    await api.place(f"{transport.input.options.prefix}.0.large", raw)
    await transport.input.send(request("other", "turn"))

    assert await take(transport, 1) == ["turn"]
    async with asyncio.timeout(30):
        while not (letters := await transport.input.dead_letters.list()):
            await take_nothing(transport)

    assert letters[0].raw == raw and "larger than" in letters[0].reason
    assert letters[0].attempt == 1


async def take_nothing(transport: NatsTransport) -> None:
    async with transport.input.consumer() as reader:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(CALM_SECONDS):
                await reader.receive()


async def test_a_status_header_of_a_producer_is_no_status(
    transport: NatsTransport, api: JetStream
) -> None:
    await api.place(f"{transport.input.options.prefix}.0.s", b"", {"Status": "404"})
    await transport.input.send(request("other", "turn"))

    assert await take(transport, 1) == ["turn"]


async def test_a_session_with_a_hundred_turns_behind_a_pause_holds_nobody_up(
    transport: NatsTransport,
) -> None:
    for number in range(100):
        await transport.input.send(request("failing", f"failing-{number}"))
    async with transport.input.consumer() as reader, asyncio.timeout(20.0):
        await (await reader.receive()).retry(600.0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await reader.receive()  # all the others are parked by now
        for number in range(50):
            await transport.input.send(request(f"sound-{number % 5}", f"sound-{number}"))
            async with asyncio.timeout(0.5):
                delivery = await reader.receive()
            assert delivery.envelope.request_id == f"sound-{number}"
            await delivery.ack()


async def test_turns_parked_by_a_process_that_got_busy_go_to_another(server: NatsServer) -> None:
    options = replace(options_for(server.url), ack_wait=30.0)
    async with (
        NatsTransport(options, SystemClock()) as busy,
        NatsTransport(options, SystemClock()) as idle,
        busy.input.consumer() as busy_reader,
        idle.input.consumer() as idle_reader,
        asyncio.timeout(15.0),
    ):
        for name in ("first", "second", "third"):
            await busy.input.send(request("session", name))
        first = await busy_reader.receive()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(CALM_SECONDS):
                await busy_reader.receive()  # parks the others
        await first.ack()
        seen: list[Delivery] = []
        for _ in range(2):
            async with asyncio.timeout(30):
                seen.append(await idle_reader.receive())
            await seen[-1].ack()
    assert [(d.envelope.request_id, d.attempt) for d in seen] == [("second", 1), ("third", 1)]


@pytest.mark.parametrize("reader_stays", [True, False])
async def test_a_turn_whose_head_went_without_a_word_is_found(
    server: NatsServer, api: JetStream, reader_stays: bool
) -> None:
    options = replace(options_for(server.url), ack_wait=30.0)
    async with (
        NatsTransport(options, SystemClock()) as one,
        NatsTransport(options, SystemClock()) as other,
        one.input.consumer() as reader,
        other.input.consumer() as other_reader,
        asyncio.timeout(15.0),
        asyncio.TaskGroup() as tasks,
    ):
        await one.input.send(request("session", "first"))
        await one.input.send(request("session", "second"))
        await reader.receive()
        waiting = tasks.create_task(reader.receive())
        await asyncio.sleep(CALM_SECONDS)  # parks the second
        if not reader_stays:
            waiting.cancel()
        await api.delete(options.input.stream, 1)  # an operator's hand, or its age
        async with asyncio.timeout(6.0):
            delivery = await (waiting if reader_stays else other_reader.receive())
        assert (delivery.envelope.request_id, delivery.attempt) == ("second", 1)


async def test_a_turn_that_ends_elsewhere_wakes_the_next_one_here_at_once(
    server: NatsServer,
) -> None:
    options = replace(options_for(server.url), ack_wait=30.0)
    async with (
        NatsTransport(options, SystemClock()) as one,
        NatsTransport(options, SystemClock()) as other,
        one.input.consumer() as reader,
        other.input.consumer() as waiting_reader,
        asyncio.timeout(30.0),
        asyncio.TaskGroup() as tasks,
    ):
        await one.input.send(request("session", "first"))
        delivery = await reader.receive()
        loop = asyncio.get_running_loop()
        delays = []
        for number in range(5):
            await one.input.send(request("session", f"next-{number}"))
            waiting = tasks.create_task(waiting_reader.receive())
            await asyncio.sleep(0.6)  # it is parked there, and its process listens
            began = loop.time()
            await delivery.ack()
            delivery = await waiting
            delays.append(loop.time() - began)
        assert sorted(delays)[2] < 0.25, delays
        await delivery.ack()


async def test_waits_cancelled_at_any_moment_lose_nothing_and_spend_nothing(
    transport: NatsTransport,
) -> None:
    async with transport.input.consumer() as reader, asyncio.timeout(60.0):
        for number in range(120):
            await transport.input.send(request("session", f"turn-{number}"))
            try:
                async with asyncio.timeout(number * 0.00005):
                    delivery = await reader.receive()
            except TimeoutError:
                delivery = await reader.receive()
            assert (delivery.envelope.request_id, delivery.attempt) == (f"turn-{number}", 1)
            await delivery.ack()
