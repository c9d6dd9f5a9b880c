"""Members of a group come, go and are expelled: nothing is lost, doubled or reordered."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from turnline.errors import FencedError
from turnline.protocol.clock import SystemClock
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.kafka import KafkaServer
from turnline.transport import Delivery
from turnline.transport.kafka import KafkaOptions, KafkaTransport
from turnline.transport.kafka.bookkeeping import LocalBookkeeping
from turnline.transport.kafka.harness import QUICK, fresh_topics
from turnline.transport.kafka.options import ConfigValue

CLASSIC: Mapping[str, ConfigValue] = {}
CONSUMER: Mapping[str, ConfigValue] = {"group.protocol": "consumer"}
SESSIONS, TURNS = 16, 15


@dataclass(slots=True)
class Diary:
    """What happened to the turns, over all members.

    Attributes:
        acked: by session, in the order of their acks.
        out: sessions with a delivery that runs and is not fenced.
    """

    acked: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    out: set[str] = field(default_factory=set)
    overlaps: list[str] = field(default_factory=list)
    count: int = 0
    moved: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def reach(self, count: int) -> None:
        """Return when that many turns were acked."""
        async with asyncio.timeout(60.0), self.moved:
            await self.moved.wait_for(lambda: self.count >= count)


async def _read(transport: KafkaTransport, diary: Diary, tasks: asyncio.TaskGroup) -> None:
    async with transport.input.consumer() as reader:
        while True:
            # A reader that stops finishes what it runs.
            delivery = await reader.receive()
            await asyncio.shield(tasks.create_task(_handle(delivery, diary)))


async def _handle(delivery: Delivery, diary: Diary) -> None:
    session = delivery.envelope.session_id
    if session in diary.out:
        diary.overlaps.append(session)
    diary.out.add(session)
    try:
        await asyncio.sleep(0.01)
        # Before its ack is confirmed: the next one may start elsewhere before we hear of it.
        diary.out.discard(session)
        await delivery.ack()
    except FencedError:
        return
    diary.acked[session].append(delivery.envelope.request_id)
    diary.count += 1
    async with diary.moved:
        diary.moved.notify_all()


@asynccontextmanager
async def member(
    options: KafkaOptions, books: LocalBookkeeping, diary: Diary
) -> AsyncIterator[KafkaTransport]:
    """Give a transport of its own that reads, for the length of the block."""
    async with (
        KafkaTransport(options, SystemClock(), books) as transport,
        asyncio.TaskGroup() as tasks,
    ):
        readers = [tasks.create_task(_read(transport, diary, tasks)) for _ in range(4)]
        yield transport
        for reader in readers:
            reader.cancel()


async def _send(transport: KafkaTransport) -> None:
    for number in range(TURNS):
        for session in range(SESSIONS):
            await transport.input.send(request(f"s{session}", f"{number:03}"))


@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER], ids=["classic", "consumer"])
async def test_members_that_come_and_go_lose_double_and_reorder_nothing(
    server: KafkaServer, protocol: Mapping[str, ConfigValue]
) -> None:
    diary, books = Diary(), LocalBookkeeping(SystemClock())
    every = SESSIONS * TURNS
    async with fresh_topics(server.bootstrap, partitions=6) as fresh:
        options = replace(fresh, client_config={**QUICK, **protocol})
        async with asyncio.TaskGroup() as tasks, member(options, books, diary) as first:
            tasks.create_task(_send(first))
            await diary.reach(every // 6)
            async with member(options, books, diary):
                await diary.reach(every // 2)
            async with member(options, books, diary):
                await diary.reach(every)
    expected = [f"{number:03}" for number in range(TURNS)]
    assert dict(diary.acked) == {f"s{session}": expected for session in range(SESSIONS)}
    assert diary.overlaps == []


async def test_a_turn_that_outlives_a_move_of_its_partition_is_fenced_and_runs_elsewhere(
    server: KafkaServer,
) -> None:
    books = LocalBookkeeping(SystemClock())
    async with (
        fresh_topics(server.bootstrap, partitions=4) as options,
        KafkaTransport(options, SystemClock(), books) as first,
        first.input.consumer() as reader,
        asyncio.timeout(40.0),
    ):
        for number in range(12):
            await first.input.send(request(f"s{number}", "turn"))
        running = {(d := await reader.receive()).envelope.session_id: d for _ in range(12)}
        async with (
            KafkaTransport(options, SystemClock(), books) as second,
            second.input.consumer() as other,
        ):
            moved = [await other.receive()]
            with pytest.raises(TimeoutError):
                while True:
                    async with asyncio.timeout(2.0):
                        moved.append(await other.receive())
            sessions = {delivery.envelope.session_id for delivery in moved}
            assert {delivery.attempt for delivery in moved} == {2}
            for session in sessions:
                with pytest.raises(FencedError):
                    await running[session].renew()
                with pytest.raises(FencedError):
                    await running[session].ack()
            for session in running.keys() - sessions:
                await running[session].ack()
            for delivery in moved:
                await delivery.ack()
            stats = await second.input.stats()
    assert 0 < len(sessions) < 12
    assert (stats.waiting, stats.in_flight) == (0, 0)


async def test_a_slow_turn_beyond_the_poll_interval_keeps_its_membership(
    server: KafkaServer,
) -> None:
    async with fresh_topics(server.bootstrap, partitions=1) as fresh:
        options = replace(fresh, client_config={**QUICK, "max.poll.interval.ms": 6000})
        async with (
            KafkaTransport(options, SystemClock()) as transport,
            transport.input.consumer() as reader,
            asyncio.timeout(40.0),
        ):
            await transport.input.send(request("slow", "first"))
            await transport.input.send(request("slow", "second"))
            slow = await reader.receive()
            for number in range(9):
                await asyncio.sleep(1.0)
                await slow.renew()
                await transport.input.send(request(f"quick-{number}", "turn"))
                await (await reader.receive()).ack()
            await slow.ack()
            after = await reader.receive()
            assert (after.envelope.request_id, after.attempt) == ("second", 1)


async def test_a_new_owner_repeats_the_unfinished_head_and_none_of_what_is_done_behind_it(
    server: KafkaServer,
) -> None:
    async with fresh_topics(server.bootstrap, partitions=1) as options:
        async with (
            KafkaTransport(options, SystemClock()) as first,
            first.input.consumer() as reader,
            asyncio.timeout(30.0),
        ):
            await first.input.send(request("stuck", "head"))
            for number in range(300):
                await first.input.send(request(f"s{number % 30}", f"turn-{number}"))
            stuck = await reader.receive()
            assert stuck.envelope.request_id == "head"
            for _ in range(300):
                await (await reader.receive()).ack()
        async with (
            KafkaTransport(options, SystemClock()) as second,
            second.input.consumer() as reader,
            asyncio.timeout(30.0),
        ):
            again = await reader.receive()
            assert again.envelope.request_id == "head"
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.0):
                    await reader.receive()
            await again.ack()
            stats = await second.input.stats()
    assert (stats.waiting, stats.in_flight) == (0, 0)


async def test_a_static_member_that_restarts_goes_on_with_its_partitions(
    server: KafkaServer,
) -> None:
    async with fresh_topics(server.bootstrap, partitions=2) as fresh:
        long: Mapping[str, ConfigValue] = {
            "session.timeout.ms": 60_000,
            "group.instance.id": "pod-0",
        }
        options = replace(fresh, client_config={**QUICK, **long})
        for name in ("first", "second", "third"):
            # Nobody waits for a session of a minute to end: it is taken over by its name.
            async with (
                KafkaTransport(options, SystemClock()) as transport,
                transport.input.consumer() as reader,
                asyncio.timeout(20.0),
            ):
                await transport.input.send(request("session", name))
                delivery = await reader.receive()
                assert delivery.envelope.request_id == name
                await delivery.ack()
