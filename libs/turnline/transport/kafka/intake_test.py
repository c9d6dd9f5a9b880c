"""Lanes, and what is left of them when partitions move; without a broker, on a hand-moved clock."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from turnline.errors import FencedError
from turnline.testing.clock import FakeClock
from turnline.testing.conformance.transport.envelopes import request
from turnline.transport.background import Background
from turnline.transport.kafka.holding import Holding, Lane, Prepared, Record
from turnline.transport.kafka.intake import Intake
from turnline.transport.kafka.member import Member, MemberEvents
from turnline.transport.kafka.progress import Progress

LEASE_SECONDS = 10.0


class Bench:
    """An intake with partitions that come and go by call."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.background = Background()
        self.unspent: list[str] = []
        self.intake = Intake(
            topic="topic",
            lease_seconds=LEASE_SECONDS,
            commit_seconds=1.0,
            background=self.background,
            clock=self.clock,
            make_member=_no_member,
        )
        self.intake.prepare = self._prepare
        self.intake.unspend = self._unspend
        self.intake.open()

    def assign(self, *keys: bytes) -> Holding:
        """Give the intake partition 0 anew, with a record of each key from offset 0 on."""
        holding = Holding(partition=0, progress=Progress(0))
        self.intake.assigned([holding])
        self.intake.records(
            [
                Record(holding=holding, offset=offset, at_ms=1, key=key, raw=b"", headers={})
                for offset, key in enumerate(keys)
            ]
        )
        return holding

    def lose(self, holding: Holding) -> None:
        """Take a partition away."""
        holding.lost = True
        self.intake.lost([holding])

    async def _prepare(self, lane: Lane, record: Record) -> Prepared | None:
        return Prepared(request("session", record.name), 1)

    async def _unspend(self, record: Record) -> None:
        self.unspent.append(record.name)


def _no_member(events: MemberEvents) -> Member:
    raise AssertionError("no member is needed here")


@asynccontextmanager
async def opened() -> AsyncIterator[tuple[Bench, asyncio.TaskGroup]]:
    """Give a bench and a group for tasks that wait."""
    bench = Bench()
    async with asyncio.TaskGroup() as tasks:
        bench.background.open(tasks)
        yield bench, tasks


async def test_a_key_that_runs_here_waits_when_its_partition_is_lost_and_comes_back() -> None:
    async with opened() as (bench, tasks):
        first = bench.assign(b"session")
        held, _ = await bench.intake.take(set())
        bench.lose(first)
        bench.assign(b"session")
        again = tasks.create_task(bench.intake.take(set()))
        await bench.clock.run_ready()
        assert not again.done()
        with pytest.raises(FencedError):
            bench.intake.renew(held)
        assert (await again)[0].record.offset == 0


async def test_a_holder_that_is_gone_keeps_its_key_no_longer_than_its_lease() -> None:
    async with opened() as (bench, tasks):
        first = bench.assign(b"session")
        await bench.intake.take(set())
        bench.lose(first)
        bench.assign(b"session")
        again = tasks.create_task(bench.intake.take(set()))
        await bench.clock.advance(LEASE_SECONDS - 1)
        assert not again.done()
        await bench.clock.advance(2.0)
        assert (await again)[0].record.offset == 0


async def test_other_keys_of_a_partition_that_came_back_do_not_wait() -> None:
    async with opened() as (bench, _):
        first = bench.assign(b"running", b"other")
        await bench.intake.take(set())
        bench.lose(first)
        bench.assign(b"running", b"other")
        held, _ = await bench.intake.take(set())
        assert held.record.key == b"other"


async def test_what_was_made_ready_for_nobody_is_not_counted_when_its_partition_is_lost() -> None:
    async with opened() as (bench, tasks):
        holding = bench.assign(b"session")
        waiting = tasks.create_task(bench.intake.take(set()))
        await asyncio.sleep(0)
        waiting.cancel()
        await bench.clock.run_ready()
        assert bench.unspent == []
        bench.lose(holding)
        await bench.clock.run_ready()
        assert (waiting.cancelled(), bench.unspent) == (True, ["0-0-1"])


async def test_what_was_read_from_a_lost_partition_is_dropped() -> None:
    async with opened() as (bench, tasks):
        holding = bench.assign(b"a", b"b")
        bench.lose(holding)
        waiting = tasks.create_task(bench.intake.take(set()))
        await bench.clock.run_ready()
        assert not waiting.done()
        waiting.cancel()
        await bench.clock.run_ready()
        assert bench.unspent == []


async def test_a_partition_is_let_go_when_nothing_of_it_is_out() -> None:
    async with opened() as (bench, _):
        holding = bench.assign(b"a", b"b")
        held, _ = await bench.intake.take(set())
        gone = asyncio.Event()
        bench.intake.leaving([holding], gone.set)
        assert not gone.is_set()
        bench.intake.mark_done(held)
        assert gone.is_set()


async def test_nothing_more_is_handed_out_of_a_partition_that_leaves() -> None:
    async with opened() as (bench, tasks):
        holding = bench.assign(b"a", b"b")
        bench.intake.leaving([holding], lambda: None)
        waiting = tasks.create_task(bench.intake.take(set()))
        await bench.clock.run_ready()
        assert not waiting.done()
        waiting.cancel()


async def test_what_is_held_of_a_lost_partition_can_be_given_back_no_more() -> None:
    async with opened() as (bench, _):
        holding = bench.assign(b"a")
        held, _ = await bench.intake.take(set())
        bench.lose(holding)
        for settle in (bench.intake.renew, bench.intake.mark_done, bench.intake.check):
            with pytest.raises(FencedError):
                settle(held)
        with pytest.raises(FencedError):
            bench.intake.give_back(held, 0.0)


async def test_records_come_lane_by_lane_however_many_lie_before_them() -> None:
    async with opened() as (bench, _):
        bench.assign(*[b"slow"] * 50, b"quick")
        keys = [(await bench.intake.take(set()))[0].record.key for _ in range(2)]
        assert keys == [b"slow", b"quick"]
