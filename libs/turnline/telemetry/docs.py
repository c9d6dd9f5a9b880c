"""The page of all signals for operators, made from `turnline.telemetry.names`.

python -m turnline.telemetry.docs > docs/telemetry.md
"""

import sys
from collections.abc import Iterable, Iterator

from turnline.telemetry import names
from turnline.telemetry.schema import (
    CounterSpec,
    HistogramSpec,
    Label,
    Metric,
    MetricSpec,
)

_INTRODUCTION = """\
# Telemetry

Every signal Turnline emits. This page is made from `libs/turnline/telemetry/names.py`; change that
file and run `python -m turnline.telemetry.docs > docs/telemetry.md`.

No signal holds a prompt, an answer, a token or a body.
"""

_METRICS = """\
## Metrics

Served at `GET /metrics` in the Prometheus text format, with the `process_*` metrics of the process.
A series appears in the processes that use it. The `turnline_queue_*` gauges are asked of the broker
at each scrape; a queue that does not answer has none, rather than an old number or a 0.
"""

_EVENTS = """\
## Log events

One line per event on standard error: JSON, or text on a terminal. Each line has `timestamp` (ISO
8601, UTC), `level`, `event` and `room` (the part of the program), and where they are known:
{bound}.
A line about an exception has `exception_type` and `exception`, the traceback; in JSON the messages
of exceptions that are not Turnline's own are left out, since they may quote a prompt.
"""

_SPANS = """\
## Spans

Sent to the OTLP endpoint, if one is set. One turn is one trace over all processes: the envelope
carries the context of `turn.request`, so attempts are siblings and the answer joins them.
Attributes have the prefix `turnline.`; a failed span has `error.type` (a failure code or an
exception's type), one that was cancelled `turnline.cancelled`. Log lines inside a span carry its
`trace_id` and `span_id`.
"""


def render() -> str:
    """Give the whole page, in Markdown, ending in a line end."""
    bound = ", ".join(f"`{name}`" for name in names.BOUND_FIELDS)
    parts = (
        _INTRODUCTION,
        _METRICS,
        _table(("metric", "type", "labels", "meaning"), map(_metric_row, names.METRICS)),
        _buckets(),
        _EVENTS.format(bound=bound),
        _table(
            ("event", "fields", "meaning"),
            ((f"`{e.name}`", _quoted(e.fields), e.help) for e in names.EVENTS),
        ),
        _SPANS,
        _table(
            ("span", "kind", "parent", "attributes", "meaning"),
            (
                (f"`{s.name}`", s.kind.value, s.parent, _quoted(s.attributes), s.help)
                for s in names.SPANS
            ),
        ),
    )
    return "\n".join(parts)


def _metric_row(spec: Metric) -> tuple[str, ...]:
    return (f"`{spec.full_name}`", _type(spec), "<br>".join(map(_label, spec.labels)), spec.help)


def _type(spec: MetricSpec) -> str:
    if isinstance(spec, CounterSpec):
        kind = "counter"
    else:
        kind = "histogram" if isinstance(spec, HistogramSpec) else "gauge"
    return f"{kind}, {spec.unit}" if spec.unit else kind


def _label(label: Label) -> str:
    values = ", ".join(label.values) if label.values else f"matches `{label.pattern}`"
    return f"`{label.name}`: {values}"


def _buckets() -> str:
    lines: Iterator[str] = (
        f"Buckets of `{spec.full_name}`: {', '.join(f'{bound:g}' for bound in spec.buckets)}.\n"
        for spec in names.METRICS
        if isinstance(spec, HistogramSpec)
    )
    return "\n".join(lines)


def _quoted(items: Iterable[str]) -> str:
    return ", ".join(f"`{item}`" for item in items)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


if __name__ == "__main__":
    sys.stdout.write(render())
