"""When a member's commits go out, and what each of them says."""

import asyncio

from turnline.transport.kafka.commits import Commits
from turnline.transport.kafka.holding import Holding
from turnline.transport.kafka.member import Offsets
from turnline.transport.kafka.progress import Progress

_SOON = 5.0


class Member:
    """Takes commits; each ends when the test says so."""

    def __init__(self) -> None:
        self.taken: asyncio.Queue[Offsets] = asyncio.Queue(maxsize=100)
        self.commits = Commits("t", send=self._take, refused=_never, seconds=_SOON)
        self.holding = Holding(partition=0, progress=Progress(0))
        for offset in range(100):
            self.holding.progress.read(offset)

    def ack(self, offset: int) -> "asyncio.Future[None]":
        """Finish a record."""
        self.holding.progress.finish(offset)
        return self.commits.enlist(self.holding)

    async def end_next(self) -> int:
        """Wait for the next commit and confirm it; give how far it says all is done."""
        async with asyncio.timeout(_SOON):
            offsets = await self.taken.get()
        self.commits.ended(None, offsets)
        return offsets[0].offset

    def _take(self, offsets: Offsets) -> bool:
        self.taken.put_nowait(offsets)
        return True


def _never(_: Holding) -> None:
    raise AssertionError


async def test_the_first_ack_is_committed_at_once() -> None:
    member = Member()
    acked = member.ack(0)

    assert member.taken.qsize() == 1
    assert await member.end_next() == 1
    assert acked.done()


async def test_what_is_acked_while_a_commit_is_on_its_way_goes_with_the_next_one() -> None:
    member = Member()
    acks = [member.ack(offset) for offset in range(10)]

    assert [await member.end_next() for _ in range(2)] == [1, 10]
    assert all(ack.done() for ack in acks)
    assert member.taken.empty()


async def test_acks_that_follow_a_commit_closely_share_one() -> None:
    member = Member()
    member.ack(0)
    await member.end_next()
    acks = [member.ack(offset) for offset in range(1, 10)]

    assert await member.end_next() == 10
    assert all(ack.done() for ack in acks)
    assert member.taken.empty()


async def test_a_commit_of_many_acks_is_followed_later() -> None:
    member = Member()
    loop = asyncio.get_running_loop()
    member.ack(0)
    await member.end_next()
    acked = loop.time()
    for offset in range(1, 11):
        member.ack(offset)
    await member.end_next()
    member.ack(11)
    await member.end_next()

    # The commit of one is followed after 4 ms, that of ten after 20 more; timers go by a clock of
    # some milliseconds.
    assert loop.time() - acked > 0.018


async def test_partitions_that_leave_are_committed_without_a_pause() -> None:
    member = Member()
    member.ack(0)
    await member.end_next()
    member.ack(1)
    member.commits.flush()

    assert member.taken.qsize() == 1
    assert await member.end_next() == 2
