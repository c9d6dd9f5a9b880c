"""The books of one process meet the suite, and learn from the broker what others finished."""

import pytest

from turnline.testing.clock import FakeClock
from turnline.testing.conformance.bookkeeping import BookkeepingConformance, BookkeepingDesk
from turnline.transport.kafka.bookkeeping import LocalBookkeeping


class TestLocalBookkeeping(BookkeepingConformance):
    @pytest.fixture
    def desk(self) -> BookkeepingDesk:
        clock = FakeClock()
        books = LocalBookkeeping(clock)
        return BookkeepingDesk(books=books, other=books, pass_seconds=clock.advance)


async def _send(books: LocalBookkeeping, name: str, offset: int) -> None:
    verdict = await books.admit("q", name, "g", patience=5.0, max_messages=9, max_per_group=2)
    assert verdict == "taken"
    await books.sent("q", name, "g", window=10.0, place=(0, offset))


async def test_what_others_finished_gives_its_room_back() -> None:
    books = LocalBookkeeping(FakeClock())
    await _send(books, "a", 0)
    await _send(books, "b", 1)
    full = await books.admit("q", "c", "g", patience=5.0, max_messages=9, max_per_group=2)
    assert full == "group_full"
    await books.forget("q", {0: 1})
    await _send(books, "c", 2)


async def test_what_nobody_knows_the_place_of_keeps_its_room() -> None:
    books = LocalBookkeeping(FakeClock())
    await books.admit("q", "a", "g", patience=5.0, max_messages=1, max_per_group=0)
    await books.forget("q", {0: 1_000})
    again = await books.admit("q", "b", "g", patience=5.0, max_messages=1, max_per_group=0)
    assert again == "queue_full"
