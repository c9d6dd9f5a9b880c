"""Two processes on one queue that share books, and what becomes of them without."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from turnline.config import Settings
from turnline.errors import Code, QueueFullError
from turnline.hosting import open_backends
from turnline.protocol.clock import SystemClock
from turnline.store.registry import open_bookkeeping
from turnline.telemetry import captured_logs
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.testing.servers.valkey import ValkeyServer, running_valkey
from turnline.transport import Delivery, Transport
from turnline.transport.sqs import SqsOptions, SqsTransport
from turnline.transport.sqs.harness import fresh_queues

CLOCK = SystemClock()


@pytest.fixture(scope="module")
def valkey() -> Iterator[ValkeyServer]:
    with running_valkey() as valkey:
        yield valkey


@pytest.fixture
async def options(server: ElasticMqServer) -> AsyncIterator[SqsOptions]:
    async with fresh_queues(server.url) as options:
        yield replace(
            options, visibility_timeout=2, input=replace(options.input, max_per_session=2)
        )


def settings_for(valkey: ValkeyServer) -> Settings:
    return Settings.model_validate({"session": {"type": "valkey", "valkey": {"url": valkey.url}}})


@asynccontextmanager
async def process(options: SqsOptions, valkey: ValkeyServer) -> AsyncIterator[Transport]:
    """A transport with a connection of its own to the books."""
    async with (
        open_bookkeeping(settings_for(valkey), CLOCK) as books,
        SqsTransport(options, CLOCK, books) as transport,
    ):
        yield transport


async def taken(transport: Transport) -> Delivery:
    async with asyncio.timeout(20), transport.input.consumer() as consumer:
        return await consumer.receive()


async def test_a_sessions_share_is_kept_over_all_processes_and_free_again_when_done(
    options: SqsOptions, valkey: ValkeyServer
) -> None:
    async with process(options, valkey) as one, process(options, valkey) as other:
        await one.input.send(request("s", "a"))
        await other.input.send(request("s", "b"))
        with pytest.raises(QueueFullError) as refused:
            await one.input.send(request("s", "c"))
        await one.input.send(request("t", "a"))
        first = await taken(other)
        await first.ack()
        await one.input.send(request(first.envelope.session_id, "d"))

    assert refused.value.code is Code.SESSION_QUEUE_FULL
    assert refused.value.retry_after


async def test_a_copy_that_another_process_sent_is_told(
    options: SqsOptions, valkey: ValkeyServer
) -> None:
    turn = request("s", "a")
    async with process(options, valkey) as one, process(options, valkey) as other:
        sent = [await one.input.send(turn), await other.input.send(turn)]

    assert sent == [True, False]


async def test_what_one_process_handed_back_is_no_attempt_for_another_and_what_failed_is(
    options: SqsOptions, valkey: ValkeyServer
) -> None:
    attempts = []
    async with process(options, valkey) as one, process(options, valkey) as other:
        await one.input.send(request("s", "a"))
        for reader, settle in ((one, "release"), (other, "release"), (one, "retry")):
            delivery = await taken(reader)
            attempts.append(delivery.attempt)
            await (delivery.release() if settle == "release" else delivery.retry(0.0))
        attempts.append((await taken(other)).attempt)

    assert attempts == [1, 1, 1, 2]


async def test_an_attempt_whose_process_died_is_spent(
    options: SqsOptions, valkey: ValkeyServer
) -> None:
    async with process(options, valkey) as one, process(options, valkey) as other:
        await one.input.send(request("s", "a"))
        await taken(one)
        again = await taken(other)

        assert again.attempt == 2


async def test_the_last_delivery_before_sqs_gives_up_is_past_the_attempts_whatever_books_say(
    options: SqsOptions, valkey: ValkeyServer
) -> None:
    async with process(options, valkey) as one:
        await one.input.send(request("s", "a"))
        ceiling = options.input.max_receive_count + 97
        queue = one.input
        attempts = []
        async with asyncio.timeout(60), queue.consumer() as consumer:
            for _ in range(ceiling):
                delivery = await consumer.receive()
                attempts.append(delivery.attempt)
                await delivery.release()

    assert attempts[:-1] == [1] * (ceiling - 1)
    assert attempts[-1] == ceiling


async def test_turns_go_on_while_the_books_are_away(options: SqsOptions) -> None:
    with running_valkey() as valkey:
        async with process(options, valkey) as one:
            valkey.kill()
            with captured_logs() as logs:
                await one.input.send(request("s", "a"))
                delivery = await taken(one)
                attempt = delivery.attempt
                await delivery.ack()

    assert attempt == 1
    told = [log for log in logs if log["event"] == "dependency.unavailable"]
    # Once, and then they are let rest.
    assert [log["dependency"] for log in told].count("bookkeeping") == 1


async def test_books_are_opened_where_sessions_are_and_nobody_else_needs_any(
    options: SqsOptions, valkey: ValkeyServer
) -> None:
    queues = {
        "type": "sqs",
        "input": {"url": options.input.url},
        "output": {"url": options.output.url},
        "sqs": {
            "region": options.region,
            "endpoint_url": options.endpoint_url,
            "max_messages_per_session": 1,
        },
    }
    block = {"type": "valkey", "valkey": {"url": valkey.url, "prefix": "opened:"}}
    for session, taken_in in ((block, 1), ({"type": "in_memory"}, 2)):
        settings = Settings.model_validate({"execution": {"queues": queues}, "session": session})
        async with open_backends(settings, CLOCK) as backends:
            sent = 0
            for number in range(2):
                try:
                    turn = request("s", f"{session['type']}-{number}")
                    sent += await backends.transport.input.send(turn)
                except QueueFullError:
                    break
        assert sent == taken_in
