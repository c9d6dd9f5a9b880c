"""What becomes of a delivery, as a value (ADR 0004).

A handler returns one of these instead of raising or calling the broker, so that "every delivery
ends settled or deliberately left" can be read off one `match` in the consume loop.
"""

from dataclasses import dataclass

from turnline.errors import Code


@dataclass(frozen=True, slots=True)
class Ack:
    """Done: remove the envelope."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again in `after` seconds; None lets the consume loop choose a back-off by attempt."""

    after: float | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """Give it back at once without spending the attempt (drain, lost claim)."""


@dataclass(frozen=True, slots=True)
class Bury:
    """Move it to the dead letters.

    Attributes:
        reason: one sentence, without the prompt.
        code: the row of the failure table, for counting.
    """

    reason: str
    code: Code


Settlement = Ack | Retry | Release | Bury
