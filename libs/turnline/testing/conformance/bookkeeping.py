"""The suite that defines `turnline.transport.Bookkeeping`; subclass it and override `desk`."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from turnline.transport import Admission, Bookkeeping

WINDOW = 0.6
SENT_AT = 1_700_000_000.0
Pass = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BookkeepingDesk:
    """Fresh books, and their time.

    Attributes:
        other: the same books as another process has them.
        pass_seconds: returns when the books have lived that much longer.
    """

    books: Bookkeeping
    other: Bookkeeping
    pass_seconds: Pass

    async def admit(
        self, name: str, group: str = "g", *, most: int = 3, share: int = 0
    ) -> Admission:
        """Admit to queue `q`."""
        return await self.books.admit(
            "q", name, group, patience=WINDOW, max_messages=most, max_per_group=share
        )

    async def send(self, name: str, group: str = "g", *, window: float = WINDOW) -> None:
        """Admit and send."""
        assert await self.admit(name, group) == "taken"
        await self.books.sent("q", name, group, window=window, place=(0, 0))

    async def begin(self, record: str, name: str = "", *, later: float = 0.0) -> int:
        """Begin a delivery of what was sent `later` than everything else."""
        return await self.other.begin("q", record, name, sent_at=SENT_AT + later, window=WINDOW)

    async def finish(self, record: str, name: str, group: str = "g") -> None:
        """Finish a record."""
        await self.other.finish("q", record, name, group, window=WINDOW)


class BookkeepingConformance:
    """Copies, room and counts."""

    @pytest.fixture
    def desk(self) -> BookkeepingDesk:
        """The books under test."""
        raise NotImplementedError("override the `desk` fixture")

    async def test_a_copy_is_known_until_its_window_ends(self, desk: BookkeepingDesk) -> None:
        await desk.send("a")
        await desk.finish("r", "a")
        assert await desk.admit("a") == "copy"
        await desk.pass_seconds(WINDOW * 1.5)
        assert await desk.admit("a") == "taken"

    async def test_what_is_being_sent_is_pending_until_somebody_gave_up(
        self, desk: BookkeepingDesk
    ) -> None:
        assert await desk.admit("a") == "taken"
        assert await desk.admit("a") == "pending"
        await desk.pass_seconds(WINDOW * 1.5)
        assert await desk.admit("a") == "taken"

    async def test_of_many_at_once_one_is_taken(self, desk: BookkeepingDesk) -> None:
        verdicts = await asyncio.gather(*(desk.admit("a") for _ in range(10)))
        assert sorted(verdicts) == ["pending"] * 9 + ["taken"]

    async def test_what_was_not_sent_is_new_and_took_no_room(self, desk: BookkeepingDesk) -> None:
        assert await desk.admit("a", most=1) == "taken"
        await desk.books.sent("q", "a", "g", window=WINDOW, place=None)
        assert await desk.admit("a", most=1) == "taken"

    async def test_without_a_window_nothing_is_a_copy(self, desk: BookkeepingDesk) -> None:
        await desk.send("a", window=0.0)
        assert await desk.admit("a") == "taken"

    async def test_room_is_taken_until_it_is_finished(self, desk: BookkeepingDesk) -> None:
        for name in ("a", "b", "c"):
            await desk.send(name)
        assert await desk.admit("d") == "queue_full"
        assert await desk.admit("a") == "copy"
        await desk.finish("r", "a")
        await desk.finish("r", "a")
        assert await desk.admit("d") == "taken"
        assert await desk.admit("e") == "queue_full"

    async def test_a_group_has_its_share(self, desk: BookkeepingDesk) -> None:
        assert await desk.admit("a", "g", share=1) == "taken"
        assert await desk.admit("b", "g", share=1) == "group_full"
        assert await desk.admit("c", "h", share=1) == "taken"
        await desk.finish("r", "a")
        assert await desk.admit("b", "g", share=1) == "taken"

    async def test_queues_are_apart(self, desk: BookkeepingDesk) -> None:
        await desk.send("a")
        other = await desk.books.admit(
            "other", "a", "g", patience=WINDOW, max_messages=1, max_per_group=1
        )
        assert other == "taken"

    async def test_deliveries_are_counted_over_all_processes(self, desk: BookkeepingDesk) -> None:
        assert [await desk.begin("r"), await desk.begin("r"), await desk.begin("s")] == [1, 2, 1]
        assert await desk.books.begin("q", "r", "", sent_at=SENT_AT, window=WINDOW) == 3

    async def test_what_was_not_delivered_is_not_counted(self, desk: BookkeepingDesk) -> None:
        await desk.begin("r")
        await desk.begin("r")
        await desk.books.unspend("q", "r")
        assert await desk.begin("r") == 2

    async def test_there_is_no_less_than_nothing(self, desk: BookkeepingDesk) -> None:
        await desk.books.unspend("q", "r")
        await desk.begin("r")
        await desk.books.unspend("q", "r")
        await desk.books.unspend("q", "r")
        assert await desk.begin("r") == 1

    async def test_counts_begin_anew_after_the_end(self, desk: BookkeepingDesk) -> None:
        await desk.begin("r", "a")
        await desk.finish("r", "a")
        assert await desk.begin("r", "a") == 1

    async def test_another_record_of_one_id_is_a_copy(self, desk: BookkeepingDesk) -> None:
        assert await desk.begin("r", "a") == 1
        assert await desk.begin("s", "a", later=WINDOW / 2) == 0
        assert await desk.begin("r", "a") == 2
        await desk.finish("r", "a")
        assert await desk.begin("s", "a", later=WINDOW / 2) == 0

    async def test_another_record_sent_after_the_window_is_none(
        self, desk: BookkeepingDesk
    ) -> None:
        assert await desk.begin("r", "a") == 1
        assert await desk.begin("s", "a", later=WINDOW * 1.1) == 1

    async def test_records_without_an_id_have_no_copies(self, desk: BookkeepingDesk) -> None:
        assert [await desk.begin("r"), await desk.begin("s")] == [1, 1]

    async def test_any_name_will_do(self, desk: BookkeepingDesk) -> None:
        odd = "\x1f3\x1fann {odd} : } é🙂"
        await desk.send(odd, odd)
        assert await desk.begin(odd, odd) == 1
        await desk.finish(odd, odd, odd)
        assert await desk.admit(odd, odd) == "copy"
