"""Metrics of one process, in a registry of its own, limited to what `names` declares.

Bind what a hot path counts once, when a component is built, and keep it:

    self._replayed = metrics.counter(names.TURN_ATTEMPTS_TOTAL, result="replayed")
    self._replayed.inc()

A series appears, at 0, when it is bound.  The numbers of queues are asked for when Prometheus
scrapes, so they are never older than the scrape.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client import Metric as Family
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.registry import Collector

from turnline.errors import TurnlineError
from turnline.telemetry import names
from turnline.telemetry.schema import (
    CounterSpec,
    GaugeSpec,
    HistogramSpec,
    MetricSpec,
    UndeclaredError,
)

_Kind = TypeVar("_Kind", Counter, Gauge, Histogram)


class BoundCounter(Protocol):
    """A counter with its labels set."""

    def inc(self, amount: float = 1) -> None:
        """Add `amount`, 0 or more."""
        ...


class BoundGauge(Protocol):
    """A gauge with its labels set."""

    def inc(self, amount: float = 1) -> None:
        """Add `amount`."""
        ...

    def dec(self, amount: float = 1) -> None:
        """Take `amount` away."""
        ...

    def set(self, value: float) -> None:
        """Make it `value`."""
        ...


class BoundHistogram(Protocol):
    """A histogram with its labels set."""

    def observe(self, amount: float) -> None:
        """Count one observation, in the unit of the metric."""
        ...


class QueueNumbers(Protocol):
    """What a queue says of itself; `turnline.transport.QueueStats` is one."""

    @property
    def waiting(self) -> int:
        """Envelopes not out for delivery."""
        ...

    @property
    def in_flight(self) -> int:
        """Deliveries out and not settled."""
        ...

    @property
    def dead(self) -> int:
        """Dead letters held."""
        ...

    @property
    def oldest_age_seconds(self) -> float:
        """Age of the oldest envelope that is not settled; 0 when empty."""
        ...


class Pacer(Protocol):
    """The part of `turnline.protocol.clock.Clock` that measuring lag needs."""

    def monotonic(self) -> float:
        """Seconds since an unnamed moment."""
        ...

    async def sleep_until(self, monotonic: float) -> None:
        """Return once `monotonic()` reached `monotonic`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSource:
    """One queue to ask at each scrape.

    Attributes:
        queue: `input` or `output`.
        stats: asks it; may raise TurnlineError.
    """

    queue: str
    stats: Callable[[], Awaitable[QueueNumbers]]


_DECLARED: Mapping[str, MetricSpec] = {spec.name: spec for spec in names.METRICS}

# Not kept but asked for at each scrape.
_SCRAPED: Mapping[MetricSpec, Callable[[QueueNumbers], float]] = {
    names.QUEUE_WAITING: lambda numbers: numbers.waiting,
    names.QUEUE_IN_FLIGHT: lambda numbers: numbers.in_flight,
    names.QUEUE_DEAD: lambda numbers: numbers.dead,
    names.QUEUE_OLDEST_AGE_SECONDS: lambda numbers: numbers.oldest_age_seconds,
}


class Metrics:
    """The metrics of one process.  Make one in `main` and hand it to what counts."""

    def __init__(self, *, process: bool = True) -> None:
        """Make an empty registry.

        Args:
            process: add memory, CPU and file descriptors of this process, and the Python version.
        """
        self._registry = CollectorRegistry()
        self._families: dict[str, Counter | Gauge | Histogram] = {}
        # By the specification's identity: only declared ones, which live for ever, come in here.
        self._series: dict[tuple[object, ...], Counter | Gauge | Histogram] = {}
        if process:
            ProcessCollector(registry=self._registry)
            PlatformCollector(registry=self._registry)

    def counter(self, spec: CounterSpec, **labels: str) -> BoundCounter:
        """Give the series of these labels.

        Raises:
            UndeclaredError: the metric, a label or a value is not declared in `names`, or a label
                is missing.
        """
        return self._bound(spec, Counter, labels)

    def gauge(self, spec: GaugeSpec, **labels: str) -> BoundGauge:
        """Give the series of these labels; raises as `counter` does."""
        return self._bound(spec, Gauge, labels)

    def histogram(self, spec: HistogramSpec, **labels: str) -> BoundHistogram:
        """Give the series of these labels; raises as `counter` does."""
        return self._bound(spec, Histogram, labels)

    def render(self) -> tuple[bytes, str]:
        """Give the body and content type of a scrape, without what queues say."""
        return self._rendered(())

    async def scrape(
        self, sources: Sequence[QueueSource] = (), *, wait_seconds: float = 2.0
    ) -> tuple[bytes, str]:
        """Ask all queues at once, then give the body and content type of a scrape.

        A queue that fails or takes longer than `wait_seconds` has no gauges in this scrape: an
        autoscaler that misses a number holds, one that reads a wrong 0 scales in.
        """
        async with asyncio.TaskGroup() as tasks:
            asked = {
                source.queue: tasks.create_task(self._ask(source, wait_seconds))
                for source in sources
            }
        answers = {queue: task.result() for queue, task in asked.items()}
        return self._rendered(
            _queue_families({queue: stats for queue, stats in answers.items() if stats})
        )

    async def _ask(self, source: QueueSource, wait_seconds: float) -> QueueNumbers | None:
        failures = self.counter(names.QUEUE_STATS_FAILURES_TOTAL, queue=source.queue)
        try:
            async with asyncio.timeout(wait_seconds):
                return await source.stats()
        except (TurnlineError, TimeoutError):
            failures.inc()
            return None

    def _rendered(self, queues: Sequence[Family]) -> tuple[bytes, str]:
        exposed = _Exposed(self._registry, queues)
        return generate_latest(exposed), CONTENT_TYPE_PLAIN_0_0_4

    def _bound(self, spec: MetricSpec, kind: type[_Kind], labels: dict[str, str]) -> _Kind:
        """Give a series, checked when it is first asked for."""
        key = (id(spec), kind, *labels.items())
        known = self._series.get(key)
        if isinstance(known, kind):
            return known
        family = self._family(spec, kind)
        checked = _checked(spec, labels)
        made = family.labels(**checked) if checked else family
        self._series[key] = made
        return made

    def _family(self, spec: MetricSpec, kind: type[_Kind]) -> _Kind:
        family = self._families.get(spec.name)
        if family is None:
            if _DECLARED.get(spec.name) is not spec:
                raise UndeclaredError(f"metric {spec.name!r} is not declared in names.METRICS")
            if spec in _SCRAPED:
                raise UndeclaredError(f"metric {spec.name!r} is asked for at a scrape, not set")
            family = _make(spec, self._registry)
            self._families[spec.name] = family
        if not isinstance(family, kind):
            raise UndeclaredError(f"metric {spec.name!r} is no {kind.__name__.lower()}")
        return family


async def watch_loop_lag(metrics: Metrics, clock: Pacer, *, every: float = 0.5) -> None:
    """Measure how late the loop runs what is due, every so many seconds, until cancelled."""
    lag = metrics.histogram(names.EVENT_LOOP_LAG_SECONDS)
    while True:
        due = clock.monotonic() + every
        await clock.sleep_until(due)
        lag.observe(max(0.0, clock.monotonic() - due))


class _Exposed(Collector):
    """What a scrape shows: the registry without its creation times, and the queues.

    The client library adds a `_created` gauge to every counter and histogram, which doubles the
    number of series for something nobody reads.
    """

    def __init__(self, registry: CollectorRegistry, queues: Sequence[Family]) -> None:
        self._registry = registry
        self._queues = queues

    def collect(self) -> Iterable[Family]:
        for family in self._registry.collect():
            family.samples = [s for s in family.samples if not s.name.endswith("_created")]
            yield family
        yield from self._queues


def _queue_families(stats: Mapping[str, QueueNumbers]) -> list[Family]:
    families: list[Family] = []
    for spec, read in _SCRAPED.items():
        family = GaugeMetricFamily(spec.full_name, spec.help, labels=["queue"])
        for queue, numbers in stats.items():
            family.add_metric([queue], read(numbers))
        families.append(family)
    return families if stats else []


def _make(spec: MetricSpec, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
    labels = [label.name for label in spec.labels]
    match spec:
        case CounterSpec():
            return Counter(spec.full_name, spec.help, labels, registry=registry)
        case HistogramSpec(buckets=buckets):
            return Histogram(spec.full_name, spec.help, labels, registry=registry, buckets=buckets)
        case _:
            return Gauge(spec.full_name, spec.help, labels, registry=registry)


def _checked(spec: MetricSpec, labels: dict[str, str]) -> dict[str, str]:
    declared = {label.name: label for label in spec.labels}
    if labels.keys() != declared.keys():
        raise UndeclaredError(f"metric {spec.name!r} has the labels {list(declared)}")
    for name, value in labels.items():
        if not declared[name].allows(value):
            raise UndeclaredError(f"metric {spec.name!r}: {name} cannot be {value!r}")
    return labels
