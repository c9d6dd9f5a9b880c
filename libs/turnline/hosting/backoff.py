"""How long to wait before trying again: exponential, capped, with full jitter on the upper half."""

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Pauses between attempts.

    Attributes:
        base: seconds before the second attempt; 0 means at once.
        cap: longest pause, seconds.
        uniform: source of jitter, called with the bounds of the pause.
    """

    base: float
    cap: float = 60.0
    uniform: Callable[[float, float], float] = random.uniform

    def pause(self, attempt: int) -> float:
        """Seconds to wait after attempt number `attempt` (1 or more) failed."""
        longest: float = min(self.cap, self.base * 2 ** min(attempt - 1, 32))
        return self.uniform(longest / 2, longest)
