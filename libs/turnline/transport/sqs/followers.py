"""What one receive call brought of one group: the first goes out, the others follow it.

They stay hidden while they wait, one after the other takes the first place, and when it fails
they go back behind it.  Nothing of another call ever follows: SQS gives nothing of a group while
some of it is out.
"""

from collections import deque
from contextlib import suppress

from turnline.errors import FencedError, TransportUnavailableError
from turnline.transport.sqs.held import Held
from turnline.transport.sqs.leases import Leases

# An emulator frees a group whose follower is visible while its first is out, and even AWS's words
# leave room for it; so followers come back a moment after the first one, never before.
_BEHIND_SECONDS = 1.0


class Followers:
    """The followers of one queue, by the message they follow."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._behind: dict[Held, deque[Held]] = {}

    def sort(self, batch: list[Held]) -> list[Held]:
        """Give the first of each group; keep the others."""
        firsts: dict[str, Held] = {}
        for held in batch:
            first = firsts.setdefault(held.group, held)
            if first is not held:
                self._behind.setdefault(first, deque()).append(held)
        return list(firsts.values())

    def next(self, held: Held) -> Held | None:
        """Give what takes the place of one that is gone; None: nothing followed it."""
        behind = self._behind.pop(held, None)
        if not behind:
            return None
        follower = behind.popleft()
        if behind:
            self._behind[follower] = behind
        return follower

    async def give_back(self, held: Held, seconds: float) -> None:
        """Give back what follows, the last one first, to come a moment after `seconds`.

        What SQS does not confirm comes back when its lease is over.
        """
        for follower in reversed(self._behind.pop(held, deque())):
            with suppress(FencedError, TransportUnavailableError):
                await self._leases.give_back_unspent(follower, seconds + _BEHIND_SECONDS)

    async def keep(self) -> None:
        """Renew what follows; give it back where the first one is lost."""
        for held, behind in list(self._behind.items()):
            if self._leases.is_over(held):
                await self.give_back(held, 0.0)
                continue
            for follower in behind:
                if self._leases.wants_renewal(follower):
                    with suppress(FencedError, TransportUnavailableError):
                        await self._leases.renew(follower)
