"""What Prometheus gets to see, read as Prometheus reads it."""

import asyncio
from dataclasses import dataclass

import pytest
from prometheus_client.parser import text_string_to_metric_families

from turnline.errors import TransportUnavailableError
from turnline.telemetry import Metrics, QueueSource, UndeclaredError, names, watch_loop_lag
from turnline.telemetry.schema import CounterSpec, HistogramSpec


@dataclass(frozen=True, kw_only=True)
class _Numbers:
    waiting: int = 0
    in_flight: int = 0
    dead: int = 0
    oldest_age_seconds: float = 0.0


def _samples(body: bytes) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def _bind_everything(metrics: Metrics) -> None:
    scraped = {
        names.QUEUE_WAITING,
        names.QUEUE_IN_FLIGHT,
        names.QUEUE_DEAD,
        names.QUEUE_OLDEST_AGE_SECONDS,
    }
    for spec in names.METRICS:
        labels = {label.name: label.values[0] if label.values else "200" for label in spec.labels}
        if isinstance(spec, CounterSpec):
            metrics.counter(spec, **labels)
        elif isinstance(spec, HistogramSpec):
            metrics.histogram(spec, **labels)
        elif spec not in scraped:
            metrics.gauge(spec, **labels)


def test_what_was_counted_is_shown_under_its_labels() -> None:
    metrics = Metrics(process=False)

    metrics.counter(names.REQUESTS_TOTAL, surface="rest", mode="rest_sync", status="200").inc(2)
    metrics.gauge(names.CONNECTIONS).set(3)
    metrics.histogram(names.TURN_STAGE_SECONDS, stage="agent").observe(0.02)
    body, content_type = metrics.render()

    shown = _samples(body)
    labels = (("mode", "rest_sync"), ("status", "200"), ("surface", "rest"))
    assert shown["turnline_requests_total", labels] == 2
    assert shown["turnline_connections", ()] == 3
    assert shown["turnline_turn_stage_seconds_bucket", (("le", "0.01"), ("stage", "agent"))] == 0
    assert shown["turnline_turn_stage_seconds_bucket", (("le", "0.025"), ("stage", "agent"))] == 1
    assert content_type.startswith("text/plain; version=0.0.4")


def test_a_counter_shows_zero_from_when_it_is_bound() -> None:
    metrics = Metrics(process=False)

    metrics.counter(names.LEASE_LOST_TOTAL)

    assert _samples(metrics.render()[0]) == {("turnline_lease_lost_total", ()): 0}


def test_binding_twice_gives_the_same_series() -> None:
    metrics = Metrics(process=False)

    metrics.counter(names.RETRIES_TOTAL, cause="store").inc()
    metrics.counter(names.RETRIES_TOTAL, cause="store").inc()

    assert set(_samples(metrics.render()[0]).values()) == {2}


def test_two_registries_share_nothing() -> None:
    one, other = Metrics(process=False), Metrics(process=False)

    one.counter(names.LEASE_LOST_TOTAL).inc()

    assert _samples(other.render()[0]) == {}


async def test_exactly_the_declared_metrics_can_be_seen() -> None:
    async def stats() -> _Numbers:
        return _Numbers()

    metrics = Metrics(process=False)
    _bind_everything(metrics)
    body, _ = await metrics.scrape([QueueSource(queue="input", stats=stats)])

    shown = {
        family.name + ("_total" if family.type == "counter" else "")
        for family in text_string_to_metric_families(body.decode())
    }
    assert shown == {spec.full_name for spec in names.METRICS}


@pytest.mark.parametrize(
    "labels",
    [{}, {"queue": "input"}, {"cause": "moon"}, {"cause": "store", "user": "u"}],
)
def test_labels_and_values_that_are_not_declared_are_refused(labels: dict[str, str]) -> None:
    metrics = Metrics(process=False)

    with pytest.raises(UndeclaredError):
        metrics.counter(names.RETRIES_TOTAL, **labels)


def test_a_metric_that_is_not_declared_is_refused() -> None:
    stranger = CounterSpec(name="lease_lost_total", help="same name, other words")

    with pytest.raises(UndeclaredError):
        Metrics(process=False).counter(stranger)


def test_what_queues_say_cannot_be_set_by_hand() -> None:
    with pytest.raises(UndeclaredError):
        Metrics(process=False).gauge(names.QUEUE_WAITING, queue="input")


async def test_a_scrape_asks_each_queue() -> None:
    async def of_input() -> _Numbers:
        return _Numbers(waiting=0, in_flight=1, dead=2, oldest_age_seconds=1.5)

    async def of_output() -> _Numbers:
        return _Numbers(waiting=7)

    sources = [
        QueueSource(queue="input", stats=of_input),
        QueueSource(queue="output", stats=of_output),
    ]
    shown = _samples((await Metrics(process=False).scrape(sources))[0])

    assert shown["turnline_queue_waiting", (("queue", "input"),)] == 0
    assert shown["turnline_queue_in_flight", (("queue", "input"),)] == 1
    assert shown["turnline_queue_dead", (("queue", "input"),)] == 2
    assert shown["turnline_queue_oldest_age_seconds", (("queue", "input"),)] == 1.5
    assert shown["turnline_queue_waiting", (("queue", "output"),)] == 7


async def test_a_queue_that_fails_has_no_numbers_and_is_counted() -> None:
    async def failing() -> _Numbers:
        raise TransportUnavailableError("no answer")

    async def hanging() -> _Numbers:
        await asyncio.Event().wait()
        return _Numbers()

    metrics = Metrics(process=False)
    body, _ = await metrics.scrape(
        [
            QueueSource(queue="input", stats=failing),
            QueueSource(queue="output", stats=hanging),
        ],
        wait_seconds=0.01,
    )

    assert _samples(body) == {
        ("turnline_queue_stats_failures_total", (("queue", "input"),)): 1,
        ("turnline_queue_stats_failures_total", (("queue", "output"),)): 1,
    }


def test_a_process_shows_its_memory_and_cpu() -> None:
    shown = {name for name, _ in _samples(Metrics().render()[0])}

    assert {"process_resident_memory_bytes", "process_cpu_seconds_total"} <= shown


class _LateClock:
    """A clock whose sleeps end a quarter of a second late; the third one never ends."""

    def __init__(self) -> None:
        self._now = 100.0
        self._sleeps = 0
        self.slept = asyncio.Event()

    def monotonic(self) -> float:
        return self._now

    async def sleep_until(self, monotonic: float) -> None:
        self._sleeps += 1
        if self._sleeps == 3:
            self.slept.set()
            await asyncio.Event().wait()
        self._now = monotonic + 0.25


async def test_the_lag_of_the_loop_is_what_sleeps_end_late_by() -> None:
    metrics = Metrics(process=False)
    clock = _LateClock()

    async with asyncio.TaskGroup() as tasks:
        watch = tasks.create_task(watch_loop_lag(metrics, clock))
        await clock.slept.wait()
        watch.cancel()

    shown = _samples(metrics.render()[0])
    assert shown["turnline_event_loop_lag_seconds_count", ()] == 2
    assert shown["turnline_event_loop_lag_seconds_sum", ()] == pytest.approx(0.5)
