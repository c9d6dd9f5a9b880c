"""Telemetry: logs, metrics and traces, and the names of every signal."""

from turnline.telemetry.capture import captured_logs
from turnline.telemetry.context import bind, bind_turn, bound_fields
from turnline.telemetry.logs import Logger, get_logger
from turnline.telemetry.names import declared_events, declared_fields
from turnline.telemetry.schema import UndeclaredError
from turnline.telemetry.setup import configure_logging

__all__ = [
    "Logger",
    "UndeclaredError",
    "bind",
    "bind_turn",
    "bound_fields",
    "captured_logs",
    "configure_logging",
    "declared_events",
    "declared_fields",
    "get_logger",
]
