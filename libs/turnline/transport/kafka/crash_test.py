"""A process that is killed with records in its hands, and books that outlive processes."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from turnline.errors import QueueFullError
from turnline.protocol.clock import SystemClock
from turnline.protocol.codec import encode
from turnline.store.valkey import ValkeyBookkeeping, ValkeyBookkeepingOptions
from turnline.store.valkey.server import ServerOptions, open_commands
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.kafka import KafkaServer
from turnline.testing.servers.valkey import running_valkey
from turnline.transport.kafka import KafkaOptions, KafkaTransport
from turnline.transport.kafka.harness import QUICK, fresh_topics
from turnline.transport.kafka.holding import Holding, Record
from turnline.transport.kafka.progress import Progress

CHILD = Path(__file__).with_name("holder_child.py")
# A group gives a silent member's partitions away after its session time-out: 6 s, or 2 s here.
SHORT = {**QUICK, "session.timeout.ms": 2000, "heartbeat.interval.ms": 300}


@asynccontextmanager
async def valkey_books(url: str) -> AsyncIterator[ValkeyBookkeeping]:
    """Give books on a Valkey server."""
    options = ValkeyBookkeepingOptions(prefix="t:", keep=600.0)
    async with open_commands(ServerOptions(setting="url", url=url), SystemClock()) as commands:
        yield ValkeyBookkeeping(options, commands)


@asynccontextmanager
async def holder(options: KafkaOptions, valkey_url: str) -> AsyncIterator[int]:
    """Have a process hold everything there is; give its id, and kill it in the end."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # or its folder's modules would be taken for the library's
        str(CHILD),
        options.bootstrap_servers,
        options.input.topic.removesuffix("-input"),
        valkey_url,
        stdout=asyncio.subprocess.PIPE,
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.defpath},
    )
    assert child.stdout is not None
    try:
        async with asyncio.timeout(30.0):
            assert (await child.stdout.readline()).startswith(b"holding")
        yield child.pid
    finally:
        child.kill()
        await child.wait()


async def test_what_killed_processes_held_comes_back_in_order_with_its_attempts_counted(
    server: KafkaServer,
) -> None:
    with running_valkey() as valkey:
        async with fresh_topics(server.bootstrap, partitions=2) as fresh:
            options = replace(fresh, client_config=SHORT)
            names = [f"turn-{number}" for number in range(5)]
            async with (
                valkey_books(valkey.url) as books,
                KafkaTransport(options, SystemClock(), books) as transport,
                asyncio.timeout(60.0),
            ):
                for name in names:
                    await transport.input.send(request("session", name))
                for _ in range(2):
                    async with holder(options, valkey.url):
                        pass
                seen = []
                async with transport.input.consumer() as reader:
                    for _ in names:
                        delivery = await reader.receive()
                        seen.append((delivery.envelope.request_id, delivery.attempt))
                        await delivery.ack()
    assert seen == [("turn-0", 3), *((name, 1) for name in names[1:])]


async def test_a_process_that_stalls_and_wakes_up_is_fenced(server: KafkaServer) -> None:
    with running_valkey() as valkey:
        async with fresh_topics(server.bootstrap, partitions=1) as fresh:
            options = replace(fresh, client_config=SHORT)
            async with (
                valkey_books(valkey.url) as books,
                KafkaTransport(options, SystemClock(), books) as transport,
                asyncio.timeout(60.0),
            ):
                await transport.input.send(request("session", "turn"))
                async with holder(options, valkey.url) as stalled:
                    os.kill(stalled, signal.SIGSTOP)
                    async with transport.input.consumer() as reader:
                        delivery = await reader.receive()
                        assert delivery.attempt == 2
                        os.kill(stalled, signal.SIGCONT)
                        await asyncio.sleep(1.0)  # it acks as soon as it wakes up
                        await delivery.ack()
                        assert (await transport.input.stats()).waiting == 0


async def test_copies_and_room_are_known_after_a_restart(server: KafkaServer) -> None:
    with running_valkey() as valkey:
        async with fresh_topics(server.bootstrap) as fresh:
            options = replace(fresh, max_messages=2)
            sent = request("session", "turn")
            async with (
                valkey_books(valkey.url) as books,
                KafkaTransport(options, SystemClock(), books) as transport,
            ):
                assert await transport.input.send(sent) is True
                assert await transport.input.send(request("session", "next")) is True
            async with (
                valkey_books(valkey.url) as books,
                KafkaTransport(options, SystemClock(), books) as transport,
            ):
                assert await transport.input.send(sent) is False
                with pytest.raises(QueueFullError):
                    await transport.input.send(request("session", "third"))


async def test_a_record_that_was_sent_twice_is_delivered_once(server: KafkaServer) -> None:
    # Two senders without common books: the reader finds the copy.
    async with (
        fresh_topics(server.bootstrap) as options,
        KafkaTransport(options, SystemClock()) as one,
        KafkaTransport(options, SystemClock()) as other,
        one.input.consumer() as reader,
        asyncio.timeout(20.0),
    ):
        for sender in (one, other):
            assert await sender.input.send(request("session", "turn")) is True
        await one.input.send(request("session", "next"))
        seen = []
        for _ in range(2):
            delivery = await reader.receive()
            seen.append(delivery.envelope.request_id)
            await delivery.ack()
        assert (await one.input.stats()).waiting == 0
    assert seen == ["turn", "next"]


async def test_a_record_buried_again_after_a_crash_has_one_letter(server: KafkaServer) -> None:
    async with (
        fresh_topics(server.bootstrap) as options,
        KafkaTransport(options, SystemClock()) as transport,
    ):
        record = Record(
            holding=Holding(partition=0, progress=Progress(7)),
            offset=7,
            at_ms=1_700_000_000_000,
            key=b"session",
            raw=encode(request("session", "turn")),
            headers={},
        )
        letters = transport.input.dead_letters
        await letters.add(record, 3, "gave up")
        await letters.add(record, 4, "gave up")
        (letter,) = await letters.list()
        assert (letter.attempt, letter.reason) == (4, "gave up")
