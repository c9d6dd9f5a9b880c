"""Counts what is on the topic of one queue, from what the group committed and what is held here."""

from confluent_kafka import Message

from turnline.protocol.clock import Clock
from turnline.transport.kafka.admin import Admin, Offsets
from turnline.transport.kafka.commit_reader import CommitReader
from turnline.transport.kafka.dead_letters import KafkaDeadLetters
from turnline.transport.kafka.holding import Holding
from turnline.transport.kafka.intake import Intake
from turnline.transport.kafka.options import QueueOptions
from turnline.transport.kafka.progress import count_done
from turnline.transport.kafka.reader import LogReader
from turnline.transport.port import QueueStats

_MILLISECONDS = 1000


class Census:
    """The numbers of one queue.

    Of partitions that this process holds it knows what is done; of others, what their holders
    committed last, gaps included.  What others hold out counts as waiting.
    """

    def __init__(
        self,
        *,
        queue: QueueOptions,
        admin: Admin,
        commits: CommitReader,
        reader: LogReader,
        intake: Intake,
        letters: KafkaDeadLetters,
        clock: Clock,
    ) -> None:
        self._queue = queue
        self._admin = admin
        self._commits = commits
        self._reader = reader
        self._intake = intake
        self._letters = letters
        self._clock = clock
        self.partitions = 0

    async def take(self) -> QueueStats:
        """Count now."""
        topic, numbers = self._queue.topic, range(self.partitions)
        ends = await self._admin.ends(topic, numbers)
        starts = await self._admin.starts(topic, numbers)
        committed = await self._commits.read(self._queue.group, topic, numbers)
        held = {each.partition: each for each in self._intake.holdings}
        todo, firsts = 0, {}
        for number in numbers:
            count, first = _left(
                starts[number], ends[number], committed.get(number), held.get(number)
            )
            todo += count
            if count:
                firsts[number] = first
        out = min(self._intake.out, todo)
        return QueueStats(
            waiting=todo - out,
            in_flight=out,
            dead=await self._letters.count(),
            oldest_age_seconds=await self._oldest_age(firsts),
        )

    async def _oldest_age(self, firsts: Offsets) -> float:
        """Read the records that are next to be done."""
        spans = {number: (offset, offset + 1) for number, offset in firsts.items()}
        times = await self._reader.read(self._queue.topic, spans, _sent_ms)
        if not times:
            return 0.0
        return max(0.0, self._clock.time() - min(times) / _MILLISECONDS)


def _left(
    start: int, end: int, committed: tuple[int, str] | None, holding: Holding | None
) -> tuple[int, int]:
    """Give how many records of a partition are to be done, and the offset of the first."""
    if holding is not None and holding.progress.next is not None:
        first = holding.progress.lowest
        behind = max(0, end - holding.progress.next)
        return holding.progress.unfinished + behind, (
            holding.progress.next if first is None else first
        )
    offset, text = committed or (start, "")
    first = max(start, offset)
    return max(0, end - first - count_done(text)), first


def _sent_ms(message: Message) -> int:
    return message.timestamp()[1]
