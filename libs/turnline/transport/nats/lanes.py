"""Messages held until the ones before them in their session are gone.  Pure.

Per subject the held messages by sequence; a subject is *due* when it may be that its first one is
the head of the session now, so that somebody should look.
"""

from collections import Counter
from collections.abc import Iterator

from turnline.transport.nats.held import Held


class Lanes:
    """The parked messages of one queue."""

    def __init__(self) -> None:
        self._by_subject: dict[str, dict[int, Held]] = {}
        self._count = 0
        self._due: dict[str, None] = {}
        self._looked_at: dict[str, float] = {}
        self._looking: Counter[str] = Counter()
        self._woken: set[str] = set()

    def __len__(self) -> int:
        """Messages parked."""
        return self._count

    def __iter__(self) -> Iterator[Held]:
        """Walk all parked messages, over a copy."""
        return iter([held for lane in self._by_subject.values() for held in lane.values()])

    @property
    def subjects(self) -> tuple[str, ...]:
        """Subjects with something parked."""
        return tuple(self._by_subject)

    def add(self, held: Held, now: float) -> None:
        """Park a message; an older delivery of the same one gives way."""
        lane = self._by_subject.setdefault(held.subject, {})
        self._count += held.sequence not in lane
        lane[held.sequence] = held
        self._looked_at[held.subject] = now
        if held.subject in self._woken:
            self._woken.discard(held.subject)
            self._due[held.subject] = None

    def remove(self, held: Held) -> None:
        """Take out a message, by whichever delivery of it is parked; it may be none."""
        lane = self._by_subject.get(held.subject, {})
        if lane.pop(held.sequence, None) is None:
            return
        self._count -= 1
        if not lane:
            del self._by_subject[held.subject]
            self._due.pop(held.subject, None)
            self._looked_at.pop(held.subject, None)

    def look(self, held: Held) -> None:
        """Note that somebody looks whether a message is the head; end with `looked`."""
        self._looking[held.subject] += 1

    def looked(self, held: Held) -> None:
        """Note that the look is over."""
        self._looking[held.subject] -= 1
        if not self._looking[held.subject]:
            del self._looking[held.subject]
            self._woken.discard(held.subject)

    def wake(self, subject: str) -> None:
        """Note that the head of a subject is gone."""
        if self._looking[subject]:
            # Whoever looks may have been told the old head, and will park.
            self._woken.add(subject)
        if subject in self._by_subject:
            self._due[subject] = None

    def wake_unseen(self, before: float) -> None:
        """Make due every subject that nobody looked at since."""
        for subject, at in self._looked_at.items():
            if at < before:
                self._due[subject] = None

    def take_due(self) -> Held | None:
        """Take out the first message of a due subject, the longest due one; None: none is."""
        if not self._due:
            return None
        subject = next(iter(self._due))
        del self._due[subject]
        lane = self._by_subject[subject]
        held = lane[min(lane)]
        self.remove(held)
        return held
