"""What pushing counts and logs."""

from turnline.telemetry import Metrics, get_logger, names

_log = get_logger("push")


class PushSignals:
    """The series of one process's pushes, bound once.  Frames count once for each socket."""

    def __init__(self, metrics: Metrics) -> None:
        self._frames = {
            result: metrics.counter(names.FRAMES_PUSHED_TOTAL, result=result)
            for result in ("delivered", "held", "stale", "unreachable")
        }

    def delivered(self, frames: int) -> None:
        """A socket took frames."""
        self._frames["delivered"].inc(frames)

    def held(self, frames: int) -> None:
        """Frames are kept for the user's next socket."""
        self._frames["held"].inc(frames)

    def stale(self, frames: int, *, connection_id: str) -> None:
        """A pod no longer holds a socket."""
        self._frames["stale"].inc(frames)
        _log.info("push.stale_connection", connection_id=connection_id)

    def unreachable(self, frames: int, *, reason: str) -> None:
        """A pod took no frames."""
        self._frames["unreachable"].inc(frames)
        _log.warning("push.unreachable", reason=reason)

    def skipped(self, frames: int) -> None:
        """A pod that took no frames a moment ago was not asked again."""
        self._frames["unreachable"].inc(frames)

    def store_unavailable(self) -> None:
        """A stale socket could not be forgotten; the next push finds it again."""
        _log.warning("dependency.unavailable", dependency="connection store")
