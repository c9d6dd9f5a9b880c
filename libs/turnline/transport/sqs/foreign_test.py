"""Messages that others put on a queue, and what SQS does by itself."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from turnline.protocol import ChatRequest
from turnline.protocol.clock import SystemClock
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.transport import DeadLetter, Delivery
from turnline.transport.sqs import SqsOptions, SqsTransport
from turnline.transport.sqs.api import SqsApi
from turnline.transport.sqs.harness import api_of, fresh_queues
from turnline.transport.sqs.letters import GIVEN_UP_BY_SQS
from turnline.transport.sqs.options import MOST_BYTES
from turnline.transport.sqs.wire import Outgoing

BODY = {"session_id": "s", "prompt": "hello"}


@pytest.fixture
async def options(server: ElasticMqServer) -> AsyncIterator[SqsOptions]:
    async with fresh_queues(server.url) as options:
        yield replace(options, visibility_timeout=2)


@pytest.fixture
async def api(options: SqsOptions) -> AsyncIterator[SqsApi]:
    async with api_of(options) as api:
        yield api


@pytest.fixture
async def transport(options: SqsOptions) -> AsyncIterator[SqsTransport]:
    async with SqsTransport(options, SystemClock()) as transport:
        yield transport


async def put(
    api: SqsApi, options: SqsOptions, body: str, attributes: dict[str, str] | None = None
) -> None:
    message = Outgoing(body=body, attributes=attributes or {}, group="s", dedup_id=str(hash(body)))
    await api.send(options.input.url, message)


async def receive(transport: SqsTransport) -> Delivery:
    async with transport.input.consumer() as reader, asyncio.timeout(10.0):
        return await reader.receive()


async def first_letter(transport: SqsTransport) -> DeadLetter:
    """Have a reader find nothing until there is a letter."""
    async with (
        asyncio.timeout(10.0),
        transport.input.consumer() as reader,
        asyncio.TaskGroup() as tasks,
    ):
        reading = tasks.create_task(reader.receive())
        while True:
            letters = await transport.input.dead_letters.list()
            if letters:
                break
            await asyncio.sleep(0.05)
        reading.cancel()
        return letters[0]


async def test_a_schedulers_message_is_a_request(
    transport: SqsTransport, api: SqsApi, options: SqsOptions
) -> None:
    scheduled = {
        **BODY,
        "request_id": "r",
        "user_id": "u",
        "scheduled_task_id": "t",
        "scheduled_time": "2026-11-30T00:00:00Z",
    }
    await put(api, options, json.dumps(scheduled))

    envelope = (await receive(transport)).envelope

    assert (envelope.request_id, envelope.session_id, envelope.user_id) == ("r", "s", "u")
    assert isinstance(envelope.payload, ChatRequest)
    assert envelope.payload.scheduled_task_id == "t"


async def test_what_a_schedulers_request_is_answered_with_carries_its_ids(
    transport: SqsTransport, api: SqsApi, options: SqsOptions
) -> None:
    await put(api, options, json.dumps({**BODY, "request_id": "r", "user_id": "u"}))
    asked = (await receive(transport)).envelope
    failure = asked.answer(attempt=1, payload=None, chunks=())

    assert (failure.request_id, failure.user_id) == ("r", "u")


async def test_attributes_of_the_guide_are_read(
    transport: SqsTransport, api: SqsApi, options: SqsOptions
) -> None:
    attributes = {"request_id": "from-attribute", "user_id": "u", "endpoint_url": "https://e"}
    await put(api, options, json.dumps(BODY), attributes)

    envelope = (await receive(transport)).envelope

    assert (envelope.request_id, envelope.user_id) == ("from-attribute", "u")
    assert envelope.attributes["endpoint_url"] == "https://e"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("hello", "not JSON"),
        ("[1, 2]", "not a JSON object"),
        ('{"prompt": "no ids"}', "request_id"),
        ('{"prompt": "no session", "request_id": "r"}', "session_id"),
    ],
    ids=["text", "list", "no-request", "no-session"],
)
async def test_what_is_no_envelope_is_a_dead_letter_with_its_text_and_the_reason(
    transport: SqsTransport, api: SqsApi, options: SqsOptions, body: str, reason: str
) -> None:
    await put(api, options, body)

    letter = await first_letter(transport)

    assert letter.raw == body.encode()
    assert reason in letter.reason
    assert letter.envelope is None


async def test_a_foreign_message_as_large_as_sqs_takes_is_a_dead_letter_with_its_reason(
    transport: SqsTransport, api: SqsApi, options: SqsOptions
) -> None:
    await put(api, options, "x" * MOST_BYTES)

    letter = await first_letter(transport)

    assert len(letter.raw) == MOST_BYTES
    assert (letter.reason, letter.attempt) == ("not JSON", 1)


async def test_a_letter_keeps_what_its_message_was(transport: SqsTransport) -> None:
    sent = request("session", "turn", scope="ann")
    await transport.input.send(sent)
    delivery = await receive(transport)
    await delivery.dead_letter("no use")

    (letter,) = await transport.input.dead_letters.list()
    assert letter.envelope == sent
    assert json.loads(letter.raw)["prompt"] == "turn"


async def test_what_sqs_gave_up_by_itself_is_listed_and_can_be_redriven(
    transport: SqsTransport, api: SqsApi, options: SqsOptions
) -> None:
    policy = json.loads((await api.attributes(options.input.url))["RedrivePolicy"])
    changed = json.dumps({**policy, "maxReceiveCount": 1})
    await api.configure(options.input.url, {"RedrivePolicy": changed})
    await transport.input.send(request("session", "turn"))
    await receive(transport)
    await asyncio.sleep(2.5)

    letter = await first_letter(transport)

    assert letter.reason == GIVEN_UP_BY_SQS
    assert letter.envelope is not None and letter.envelope.request_id == "turn"
    changed = json.dumps({**policy, "maxReceiveCount": 10})
    await api.configure(options.input.url, {"RedrivePolicy": changed})
    await transport.input.dead_letters.redrive(letter.id)
    again = await receive(transport)
    assert (again.envelope.request_id, again.attempt) == ("turn", 1)
    await again.ack()


async def test_the_last_delivery_before_sqs_gives_up_is_past_the_attempts(
    options: SqsOptions, api: SqsApi
) -> None:
    policy = json.loads((await api.attributes(options.input.url))["RedrivePolicy"])
    changed = json.dumps({**policy, "maxReceiveCount": 4})
    await api.configure(options.input.url, {"RedrivePolicy": changed})
    async with SqsTransport(options, SystemClock()) as transport:
        await transport.input.send(request("session", "turn"))
        for attempt in (1, 2, 3):
            delivery = await receive(transport)
            assert delivery.attempt == attempt
            await delivery.retry(0.0)
        last = await receive(transport)
        assert last.attempt == 4 > options.input.max_receive_count
        await last.dead_letter("given up")
        (letter,) = await transport.input.dead_letters.list()
        assert (letter.reason, letter.attempt) == ("given up", 4)


async def test_a_turn_that_two_processes_admit_is_one_message(
    options: SqsOptions, transport: SqsTransport
) -> None:
    sent = request("session", "turn")
    await transport.input.send(sent)
    async with SqsTransport(options, SystemClock()) as other:
        await other.input.send(sent.renewed(1_700_000_000.0))

    stats = await transport.input.stats()
    assert stats.waiting + stats.in_flight == 1


async def test_a_turn_that_another_process_sends_again_is_a_message_of_its_own(
    options: SqsOptions, transport: SqsTransport
) -> None:
    sent = request("session", "turn")
    await transport.input.send(sent)
    await (await receive(transport)).ack()

    async with SqsTransport(options, SystemClock()) as other:
        assert await other.input.send(sent.again(1_700_000_000.0)) is True

    assert (await receive(transport)).envelope.request_id == "turn"


async def test_sixty_letters_are_listed_and_purged(transport: SqsTransport) -> None:
    for number in range(60):
        await transport.input.send(request(f"session-{number}", f"turn-{number}"))
    async with transport.input.consumer() as reader, asyncio.timeout(30.0):
        for _ in range(60):
            await (await reader.receive()).dead_letter("no use")
    letters = transport.input.dead_letters
    assert len(await letters.list(limit=1000)) == 60
    assert len(await letters.list(limit=1000)) == 60
    assert await letters.purge() == 60
    assert list(await letters.list()) == []
