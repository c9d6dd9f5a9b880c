"""The states of a process, from start-up to exit, as events others wait on.

    starting -> ready -> draining -> closing -> stopped

*   draining (SIGTERM): take nothing new; finish or hand back what is there.
*   closing: no further answer will be produced here; whoever still waits is told to come back.
"""

import asyncio
from enum import StrEnum

from turnline.telemetry import get_logger

_log = get_logger("hosting")


class State(StrEnum):
    """Where a process is in its life."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    CLOSING = "closing"
    STOPPED = "stopped"


class Lifecycle:
    """One per process; every component looks at it, only the process runner moves it on.

    Attributes:
        draining: set from SIGTERM on.
        closing: set when no further answer will be produced in this process.
    """

    def __init__(self) -> None:
        self._state = State.STARTING
        self.draining = asyncio.Event()
        self.closing = asyncio.Event()

    @property
    def state(self) -> State:
        """The current state."""
        return self._state

    @property
    def accepting(self) -> bool:
        """Whether new work may be taken."""
        return self._state in (State.STARTING, State.READY)

    def ready(self, *, port: int = 0) -> None:
        """Start-up is complete; no-op once draining.

        Args:
            port: what clients reach this process at, for the log; 0 if nothing listens.
        """
        if self._state is State.STARTING:
            self._state = State.READY
            _log.info("process.ready", port=port)

    def drain(self) -> None:
        """Take nothing new from here on."""
        if self._state in (State.STARTING, State.READY):
            self._state = State.DRAINING
            self.draining.set()
            _log.info("process.draining")

    def close(self) -> None:
        """Release whoever still waits for an answer."""
        self.drain()
        if self._state is State.DRAINING:
            self._state = State.CLOSING
            self.closing.set()

    def stop(self) -> None:
        """The process is about to exit."""
        self.close()
        self._state = State.STOPPED
        _log.info("process.stopped")
