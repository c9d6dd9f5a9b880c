"""What a signal is, as data: metrics with their labels, log events with their fields, spans.

Types only; the signals themselves stand in `turnline.telemetry.names`.  Idea: the telemetry schema
of opentelemetry-demo, a registry of names that tests hold the program to.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

PREFIX = "turnline_"


class UndeclaredError(Exception):
    """A signal, label, field or value was used that `turnline.telemetry.names` does not declare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """One label of a metric.

    Attributes:
        values: all values it may take; empty where `pattern` decides.
        pattern: regular expression that a whole value must match; empty where `values` decides.
    """

    name: str
    values: tuple[str, ...] = ()
    pattern: str = ""

    def allows(self, value: str) -> bool:
        """Whether `value` may be used, so that the number of series stays bounded."""
        if self.values:
            return value in self.values
        return re.fullmatch(self.pattern, value) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSpec:
    """What all metrics have.

    Attributes:
        name: without the prefix `turnline_`; counters end in `_total`.
        help: one sentence for the operator.
        unit: `seconds`, or empty for a plain number.
        labels: in the order they are shown.
    """

    name: str
    help: str
    unit: str = ""
    labels: tuple[Label, ...] = ()

    @property
    def full_name(self) -> str:
        """The name under which Prometheus sees it."""
        return PREFIX + self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterSpec(MetricSpec):
    """Counts what happened; only grows while the process lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GaugeSpec(MetricSpec):
    """Says how much there is now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramSpec(MetricSpec):
    """Counts observations by size.

    Attributes:
        buckets: upper bounds, ascending, in `unit`; everything above the last is counted too.
    """

    buckets: tuple[float, ...]


Metric = CounterSpec | GaugeSpec | HistogramSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSpec:
    """One kind of log line.

    Attributes:
        name: `<subject>.<what happened>`.
        help: when it is written, and what to do about it where something is to be done.
        fields: fields it may carry besides the bound ids and an exception.
    """

    name: str
    help: str
    fields: tuple[str, ...] = ()


class SpanKind(StrEnum):
    """Which side of a call a span is on (OpenTelemetry's span kinds)."""

    INTERNAL = "internal"
    SERVER = "server"
    CLIENT = "client"
    PRODUCER = "producer"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanSpec:
    """One kind of span.

    Attributes:
        help: what it covers, from when to when.
        parent: what its parent is, for people.
        attributes: names it may carry, without the prefix `turnline.`.
    """

    name: str
    kind: SpanKind
    help: str
    parent: str
    attributes: tuple[str, ...] = ()
