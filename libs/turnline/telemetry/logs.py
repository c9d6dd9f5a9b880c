"""Logs: an event name and fields per line, as JSON or for a terminal.

    _log = get_logger("runner")
    _log.warning("dependency.unavailable", dependency="session store")

Events and fields are declared in `turnline.telemetry.names`; what a field may hold is guarded by
`turnline.telemetry.redaction`.  The state is Turnline's own: neither structlog's global
configuration nor the handlers a user gave the root logger are touched.  (structlog itself is not
used because importing it costs a process 60 to 300 ms, more than all else here; its model is.)

Before `configure_logging`, warnings and worse go to stderr as console lines.
"""

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from turnline.telemetry.context import bound_fields
from turnline.telemetry.names import BOUND_FIELDS, declared_events, declared_fields
from turnline.telemetry.redaction import REDACTED, is_private, shown
from turnline.telemetry.schema import UndeclaredError
from turnline.telemetry.sinks import Record, Sink, stream_sink
from turnline.telemetry.tracebacks import format_exception, type_name

DEBUG, INFO, WARNING, ERROR, CRITICAL = 10, 20, 30, 40, 50
LEVELS: Mapping[str, int] = {
    "debug": DEBUG,
    "info": INFO,
    "warning": WARNING,
    "error": ERROR,
    "critical": CRITICAL,
}

_ALWAYS_ALLOWED = frozenset(BOUND_FIELDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Where lines go and what they hold.

    Attributes:
        level: the lowest level written, in numbers of the `logging` module.
        sink: takes each record.
        base: fields of every line.
        messages: whether messages of exceptions that are not Turnline's own are shown.
        strict: raise UndeclaredError for events and fields that are not declared.
        clock: gives seconds since the epoch.
    """

    level: int
    sink: Sink
    base: Mapping[str, object] = field(default_factory=dict)
    messages: bool = True
    strict: bool = False
    clock: Callable[[], float] = time.time


_UNCONFIGURED = Output(level=WARNING, sink=stream_sink(None, "console"))


class _Current:
    """The output in use; one per process."""

    __slots__ = ("level", "output")

    def __init__(self) -> None:
        self.use(_UNCONFIGURED)

    def use(self, output: Output) -> None:
        self.output = output
        # Read on every call of a logger, so kept one step away.
        self.level = output.level


_current = _Current()


class Logger:
    """Writes events of one room; immutable, cheap to call below the level."""

    __slots__ = ("_fields", "_room")

    def __init__(self, room: str, fields: Record) -> None:
        self._room = room
        self._fields = fields

    def bind(self, **fields: object) -> "Logger":
        """Make a logger that adds `fields` to each of its lines."""
        return Logger(self._room, {**self._fields, **fields})

    def debug(self, event: str, /, **fields: object) -> None:
        """Write what only a developer wants to see."""
        if _current.level <= DEBUG:
            self._write("debug", event, fields)

    def info(self, event: str, /, **fields: object) -> None:
        """Write what happens in normal work."""
        if _current.level <= INFO:
            self._write("info", event, fields)

    def warning(self, event: str, /, **fields: object) -> None:
        """Write what is wrong and mends itself; `exc_info` adds an exception."""
        if _current.level <= WARNING:
            self._write("warning", event, fields)

    def error(self, event: str, /, **fields: object) -> None:
        """Write what somebody should look at; `exc_info` adds an exception."""
        if _current.level <= ERROR:
            self._write("error", event, fields)

    def critical(self, event: str, /, **fields: object) -> None:
        """Write what ends the process; `exc_info` adds an exception."""
        if _current.level <= CRITICAL:
            self._write("critical", event, fields)

    def always(self, level: str, event: str, /, **fields: object) -> None:
        """Write whatever the level in use is; for lines that were let through elsewhere."""
        self._write(level, event, fields)

    def _write(self, level: str, event: str, fields: dict[str, object]) -> None:
        output = _current.output
        error = _exception_of(fields.pop("exc_info", None))
        if self._fields:
            fields = {**self._fields, **fields}
        if output.strict:
            _check(event, fields)
        record: Record = {
            "timestamp": output.clock(),
            "level": level,
            "event": event,
            "room": self._room,
            **output.base,
            **bound_fields(),
        }
        for name, value in fields.items():
            record[name] = REDACTED if is_private(name) else shown(value)
        if error is not None:
            record["exception_type"] = type_name(error)
            record["exception"] = format_exception(error, messages=output.messages)
        output.sink(record)


def get_logger(room: str) -> Logger:
    """Make the logger of a room (`runner`, `hosting`); call it once, at module level."""
    return Logger(room, {})


def current_output() -> Output:
    """The output in use."""
    return _current.output


def use_output(output: Output) -> None:
    """Make all loggers of the process write to `output` from now on."""
    _current.use(output)


def _check(event: str, fields: Mapping[str, object]) -> None:
    if event not in declared_events():
        raise UndeclaredError(f"log event {event!r} is not declared in telemetry/names.py")
    undeclared = fields.keys() - declared_fields(event) - _ALWAYS_ALLOWED
    if undeclared:
        raise UndeclaredError(f"log event {event!r} declares no field {sorted(undeclared)}")


def _exception_of(value: object) -> BaseException | None:
    if isinstance(value, BaseException):
        return value
    if isinstance(value, tuple):
        return value[1] if isinstance(value[1], BaseException) else None
    return sys.exc_info()[1] if value else None
