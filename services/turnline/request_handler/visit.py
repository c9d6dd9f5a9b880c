"""One request on its way through the routes, and the signals it leaves: counts, times, a span."""

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.types import Receive

from turnline.protocol.clock import Clock
from turnline.telemetry import Metrics, names
from turnline.telemetry.metrics import BoundCounter, BoundHistogram


@dataclass(slots=True, kw_only=True)
class Visit:
    """One request.  Not frozen: what it turns out to be is filled in on the way.

    Attributes:
        headers: by lower-case name.
        surface / mode: labels of its metrics.
        status: of the answer; 500 until there is one.
    """

    method: str
    headers: Mapping[str, str]
    query: bytes
    receive: Receive
    began: float
    surface: str = "rest"
    mode: str = "read"
    status: int = 500

    def header(self, name: str) -> str:
        """Give a header by its lower-case name; empty if it was not sent."""
        return self.headers.get(name, "")


class RequestMetrics:
    """Counts and times answered requests."""

    def __init__(self, metrics: Metrics, clock: Clock) -> None:
        self._metrics = metrics
        self._clock = clock
        self._counters: dict[tuple[str, str, int], BoundCounter] = {}
        self._seconds: dict[tuple[str, str], BoundHistogram] = {}

    def answered(self, visit: Visit) -> None:
        """Count one request, whole answer included."""
        key = (visit.surface, visit.mode, visit.status)
        counter = self._counters.get(key)
        if counter is None:
            counter = self._counters[key] = self._metrics.counter(
                names.REQUESTS_TOTAL, surface=key[0], mode=key[1], status=str(key[2])
            )
        counter.inc()
        seconds = self._seconds.get(key[:2])
        if seconds is None:
            seconds = self._seconds[key[:2]] = self._metrics.histogram(
                names.REQUEST_SECONDS, surface=key[0], mode=key[1]
            )
        seconds.observe(self._clock.monotonic() - visit.began)
