"""A process that is killed with messages in its hands, and ones that stop in good order."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from turnline.protocol.clock import SystemClock
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.aws_account import CREDENTIALS
from turnline.testing.servers.aws_front import Answer, AwsFront
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.transport.sqs import SqsOptions, SqsTransport
from turnline.transport.sqs.harness import CALM_SECONDS, fresh_queues

LEASE_SECONDS = 3
CHILD = Path(__file__).with_name("holder_child.py")


@pytest.fixture
async def options(server: ElasticMqServer) -> AsyncIterator[SqsOptions]:
    async with fresh_queues(server.url) as options:
        yield replace(options, visibility_timeout=LEASE_SECONDS)


def opened(options: SqsOptions) -> SqsTransport:
    return SqsTransport(options, SystemClock())


async def hold_and_die(options: SqsOptions, batch_size: int) -> float:
    """Let a process take what it can, keep it beyond a lease, and kill it; give when."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # its folder holds modules that are called like the standard library's
        str(CHILD),
        str(options.endpoint_url),
        options.input.url,
        str(LEASE_SECONDS),
        str(batch_size),
        stdout=asyncio.subprocess.PIPE,
        env={
            "PYTHONPATH": os.pathsep.join(sys.path),
            "PATH": os.defpath,
            **CREDENTIALS,
        },
    )
    assert child.stdout is not None
    try:
        async with asyncio.timeout(40.0):
            assert (await child.stdout.readline()).startswith(b"running turn-0")
            for _ in range(6):  # more than a lease of renewals
                assert (await child.stdout.readline()).startswith(b"renewed")
    finally:
        child.kill()
        await child.wait()
    return time.monotonic()


@pytest.mark.parametrize(
    # With five, readers wait when it dies, so the server has a poll of the dead.  The emulator
    # gives it one message more, which is away for another lease.
    ("batch_size", "leases"),
    [(1, 1), (5, 2)],
)
async def test_what_a_killed_process_held_comes_back_in_order_within_its_lease(
    options: SqsOptions, batch_size: int, leases: int
) -> None:
    names = [f"turn-{number}" for number in range(5)]
    async with opened(options) as transport:
        for name in names:
            await transport.input.send(request("session", name))
        killed = await hold_and_die(options, batch_size)
        seen: list[str] = []
        async with transport.input.consumer() as reader, asyncio.timeout(20.0):
            for _ in names:
                delivery = await reader.receive()
                if not seen:
                    assert time.monotonic() - killed < LEASE_SECONDS * leases + 2.0
                    assert 2 <= delivery.attempt <= 1 + leases
                seen.append(delivery.envelope.request_id)
                await delivery.ack()
    assert seen == names


async def test_a_transport_that_closes_hands_back_what_its_polls_had_taken(
    server: ElasticMqServer, options: SqsOptions
) -> None:
    patient = replace(options, visibility_timeout=60)
    async with opened(patient) as other, AwsFront(server.port) as front:
        await other.input.send(request("session", "turn"))
        front.next("ReceiveMessage", Answer(delay=60.0, after=True))
        async with opened(replace(patient, endpoint_url=front.url)) as leaver:
            await give_up_waiting(leaver)
        async with other.input.consumer() as reader, asyncio.timeout(10.0):
            # Its lease would be a minute.
            assert (await reader.receive()).envelope.request_id == "turn"


async def test_a_reader_that_gave_up_leaves_its_message_to_another_process_at_once(
    options: SqsOptions,
) -> None:
    patient = replace(options, visibility_timeout=60)
    async with opened(patient) as one, opened(patient) as two:
        await give_up_waiting(one)
        await two.input.send(request("session", "turn"))
        async with two.input.consumer() as reader, asyncio.timeout(10.0):
            assert (await reader.receive()).envelope.request_id == "turn"


async def give_up_waiting(transport: SqsTransport) -> None:
    """Have a poll on its way that nobody waits for."""
    async with transport.input.consumer() as reader, asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(reader.receive())
        await asyncio.sleep(CALM_SECONDS)
        waiting.cancel()
