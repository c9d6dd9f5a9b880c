"""A process that is killed with messages in its hands."""

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

from turnline.protocol.clock import SystemClock
from turnline.protocol.codec import encode
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.nats import NatsServer
from turnline.transport.nats import NatsTransport
from turnline.transport.nats.harness import options_for
from turnline.transport.nats.held import Held
from turnline.transport.nats.intake import CREDIT_AFTER_SECONDS

LEASE_SECONDS = 3.0
CHILD = Path(__file__).with_name("holder_child.py")


async def test_what_a_killed_process_held_comes_back_in_order_and_only_its_turn_was_tried(
    server: NatsServer,
) -> None:
    options = replace(options_for(server.url), ack_wait=LEASE_SECONDS)
    names = [f"turn-{number}" for number in range(5)]
    async with NatsTransport(options, SystemClock()) as transport:
        for name in names:
            await transport.input.send(request("session", name))
        for _ in range(2):
            await hold_and_die(server.url, options.input.stream.removesuffix("_IN"))
        seen = []
        async with transport.input.consumer() as reader, asyncio.timeout(20.0):
            for _ in names:
                delivery = await reader.receive()
                seen.append((delivery.envelope.request_id, delivery.attempt))
                await delivery.ack()
    assert seen == [("turn-0", 3), *((name, 1) for name in names[1:])]


async def hold_and_die(url: str, name: str) -> None:
    """Let a process take everything, keep it beyond a lease, and kill it."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        str(CHILD),
        url,
        name,
        str(LEASE_SECONDS),
        stdout=asyncio.subprocess.PIPE,
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.defpath},
    )
    assert child.stdout is not None
    try:
        async with asyncio.timeout(30.0):
            assert (await child.stdout.readline()).startswith(b"running turn-0")
            for _ in range(6):  # more than a lease of renewals
                assert (await child.stdout.readline()).startswith(b"parked")
    finally:
        child.kill()
        await child.wait()


async def test_a_turn_that_was_parked_and_started_has_spent_its_attempt_when_it_is_dropped(
    server: NatsServer,
) -> None:
    options = replace(options_for(server.url), ack_wait=2.0)
    async with (
        NatsTransport(options, SystemClock()) as transport,
        transport.input.consumer() as reader,
        asyncio.timeout(20.0),
        asyncio.TaskGroup() as tasks,
    ):
        await transport.input.send(request("session", "first"))
        await transport.input.send(request("session", "second"))
        first = await reader.receive()
        waiting = tasks.create_task(reader.receive())
        await asyncio.sleep(CREDIT_AFTER_SECONDS + 0.6)  # parked, and credited
        await first.ack()
        assert (await waiting).attempt == 1
        again = await reader.receive()  # nobody settled or renewed it
        assert (again.envelope.request_id, again.attempt) == ("second", 2)


async def test_a_message_buried_again_after_a_crash_has_one_letter(server: NatsServer) -> None:
    async with NatsTransport(options_for(server.url), SystemClock()) as transport:
        held = Held(
            reply="$JS.ACK.x",
            consumer="all",
            delivered=3,
            sequence=7,
            stamp=1_700_000_000_000_000_000,
            subject="in.0.session",
            raw=encode(request("session", "turn")),
            lease_until=0.0,
        )
        letters = transport.input.dead_letters
        await letters.add(held, "gave up")
        held.delivered = 4
        await letters.add(held, "gave up")
        (letter,) = await letters.list()
        assert (letter.attempt, letter.reason) == (4, "gave up")
