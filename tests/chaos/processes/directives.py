"""What a prompt tells the agent of these tests to do, as JSON: how long, how often, and how badly.

Shared by the processes that ask and those that obey.
"""

import json
from dataclasses import asdict, dataclass

CRASH_CODE = 9
"""What a process exits with that its agent ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directives:
    """How a turn goes.

    Attributes:
        sleep: seconds before the first piece.
        hold: path of a file; nothing is said before it exists.  Empty: nothing is waited for.
        chunks: pieces of text.
        until: path of a file; pieces go on, beyond `chunks`, until it exists.  Empty: they do not.
        gap: seconds after each piece.
        raises: that many first attempts raise, after their pieces.
        fatal: the agent refuses, after its pieces.
        crash_once: path of a file; the attempt that can make it ends its process, after half of
            its pieces.  Empty: none does.
        crashes: every attempt ends its process so.
    """

    sleep: float = 0.0
    hold: str = ""
    chunks: int = 1
    until: str = ""
    gap: float = 0.0
    raises: int = 0
    fatal: bool = False
    crash_once: str = ""
    crashes: bool = False

    @property
    def prompt(self) -> str:
        """Give the prompt that says so."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, prompt: str) -> "Directives":
        """Read a prompt that `prompt` gave."""
        return cls(**json.loads(prompt))
