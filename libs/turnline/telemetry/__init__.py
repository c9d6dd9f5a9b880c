"""Telemetry: logs, metrics and traces, and the names of every signal."""

from turnline.telemetry import names
from turnline.telemetry.capture import captured_logs
from turnline.telemetry.context import bind, bind_turn, bound_fields
from turnline.telemetry.logs import Logger, get_logger
from turnline.telemetry.metrics import (
    BoundCounter,
    BoundGauge,
    BoundHistogram,
    Metrics,
    QueueSource,
    watch_loop_lag,
)
from turnline.telemetry.names import declared_events, declared_fields
from turnline.telemetry.schema import UndeclaredError
from turnline.telemetry.setup import configure_logging
from turnline.telemetry.traces import Span, Tracing, configure_tracing, extract, inject

__all__ = [
    "BoundCounter",
    "BoundGauge",
    "BoundHistogram",
    "Logger",
    "Metrics",
    "QueueSource",
    "Span",
    "Tracing",
    "UndeclaredError",
    "bind",
    "bind_turn",
    "bound_fields",
    "captured_logs",
    "configure_logging",
    "configure_tracing",
    "declared_events",
    "declared_fields",
    "extract",
    "get_logger",
    "inject",
    "names",
    "watch_loop_lag",
]
