"""The numbers of a queue, seen from processes that read it and from those that do not."""

import asyncio

import pytest

from turnline.protocol.clock import SystemClock
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.kafka import KafkaServer
from turnline.transport.kafka import KafkaTransport, member
from turnline.transport.kafka.harness import fresh_topics


async def test_a_group_that_never_read_has_all_before_it(server: KafkaServer) -> None:
    async with (
        fresh_topics(server.bootstrap) as options,
        KafkaTransport(options, SystemClock()) as transport,
    ):
        assert (await transport.input.stats()).waiting == 0
        await transport.input.send(request("session", "turn"))
        stats = await transport.input.stats()
        assert (stats.waiting, stats.in_flight) == (1, 0)
        assert 0.0 <= stats.oldest_age_seconds < 30.0


async def test_what_others_did_behind_an_unfinished_head_counts_as_done(
    server: KafkaServer,
) -> None:
    async with (
        fresh_topics(server.bootstrap, partitions=1) as options,
        KafkaTransport(options, SystemClock()) as runner,
        KafkaTransport(options, SystemClock()) as watcher,
        runner.input.consumer() as reader,
        asyncio.timeout(20.0),
    ):
        for number in range(10):
            await watcher.input.send(request(f"s{number}", "turn"))
        await reader.receive()
        for _ in range(4):
            await (await reader.receive()).ack()
        seen = await watcher.input.stats()
        here = await runner.input.stats()
        assert (seen.waiting, seen.in_flight) == (6, 0)
        assert (here.waiting, here.in_flight) == (5, 1)


async def test_too_far_behind_a_stuck_head_a_partition_waits_and_then_goes_on(
    server: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member, "MAX_SPAN", 20)
    monkeypatch.setattr(member, "_MAX_BATCH", 10)
    every = 120
    async with (
        fresh_topics(server.bootstrap, partitions=1) as options,
        KafkaTransport(options, SystemClock()) as transport,
        asyncio.timeout(60.0),
    ):
        await transport.input.send(request("stuck", "head"))
        for number in range(every):
            await transport.input.send(request(f"s{number}", "turn"))
        async with transport.input.consumer() as reader:
            stuck = await reader.receive()
            done = 0
            with pytest.raises(TimeoutError):
                while True:
                    async with asyncio.timeout(1.5):
                        delivery = await reader.receive()
                    await delivery.ack()
                    done += 1
            assert 10 <= done < every
            await stuck.ack()
            for _ in range(every - done):
                await (await reader.receive()).ack()
        assert (await transport.input.stats()).waiting == 0
