"""Which agent began and ended what, and when: one file that all runners append to.

A line is one write to a file opened with O_APPEND, so lines of several processes do not mix, and
what was written survives a process that is killed.
"""

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

PATH_VARIABLE = "CHAOS_AGENT_LOG"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One moment of an agent.

    Attributes:
        what: start or end.
        at: nanoseconds of the machine's monotonic clock, one for all its processes.
        time: seconds since the epoch, to compare with log lines.
    """

    what: str
    at: int
    time: float
    pid: int
    user: str
    session: str
    request: str
    attempt: int


def write(what: str, *, user: str, session: str, request: str, attempt: int) -> None:
    """Append a moment that is now."""
    entry = Entry(
        what=what,
        at=time.monotonic_ns(),
        time=time.time(),
        pid=os.getpid(),
        user=user,
        session=session,
        request=request,
        attempt=attempt,
    )
    line = json.dumps(asdict(entry)).encode() + b"\n"
    log = os.open(os.environ[PATH_VARIABLE], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(log, line)
    finally:
        os.close(log)


def read(path: Path) -> list[Entry]:
    """Give all moments so far, in the order written."""
    if not path.exists():
        return []
    return [Entry(**json.loads(line)) for line in path.read_text().splitlines()]
