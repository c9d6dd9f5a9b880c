"""The time of a store that lives on a FakeClock."""

from turnline.testing.clock import FakeClock


class FakeStoreTime:
    """A `StoreTime` that moves only when a case says so.

    Attributes:
        clock: give it to the store.
    """

    tick = 1.0
    patience = 5.0

    def __init__(self) -> None:
        self.clock = FakeClock()

    async def pass_ticks(self, ticks: float) -> None:
        """Move the clock."""
        await self.clock.advance(ticks * self.tick)

    async def calm(self) -> None:
        """Let every other task run until it waits."""
        await self.clock.run_ready()
