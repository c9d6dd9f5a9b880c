"""How a log record becomes a line, and where the line goes."""

import json
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal, TextIO

import orjson

Format = Literal["json", "console", "auto"]
Record = dict[str, object]
Sink = Callable[[Record], None]

_COLOURS = {
    "debug": "\x1b[2m",
    "info": "\x1b[32m",
    "warning": "\x1b[33m",
    "error": "\x1b[31m",
    "critical": "\x1b[1;31m",
}
_PLAIN = "\x1b[0m"
_HEAD = ("timestamp", "level", "event", "room", "exception", "exception_type")


def stream_sink(stream: TextIO | None, form: Format) -> Sink:
    """Make a sink that writes lines to a text stream; None is what `sys.stderr` is at the time."""
    lock = threading.Lock()
    in_json = form == "json"

    def write(record: Record) -> None:
        target = sys.stderr if stream is None else stream
        line = to_json(record) if in_json else to_console(record, colour=target.isatty())
        try:
            with lock:
                target.write(line)
                target.flush()
        except (OSError, ValueError):
            # The stream is closed or its reader is gone; a turn must not fail for its log.
            return

    return write


def to_json(record: Record) -> str:
    """One line of JSON, with its line end; `timestamp` is ISO 8601 in UTC."""
    shown = {**record, "timestamp": _iso(record["timestamp"])}
    try:
        return orjson.dumps(shown, option=orjson.OPT_APPEND_NEWLINE).decode()
    except TypeError:
        # A lone surrogate or an integer over 64 bits, which orjson refuses and JSON allows.
        return json.dumps(shown) + "\n"


def to_console(record: Record, *, colour: bool) -> str:
    """One line for a person, with its line end, and the exception on lines of its own."""
    level = str(record["level"])
    name = level.upper().ljust(8)
    if colour:
        name = f"{_COLOURS[level]}{name}{_PLAIN}"
    fields = " ".join(f"{k}={_quoted(v)}" for k, v in record.items() if k not in _HEAD)
    at = _iso(record["timestamp"])[11:23]
    line = f"{at} {name} {record['room']}: {record['event']} {fields}".rstrip()
    exception = record.get("exception")
    return f"{line}\n{exception}\n" if exception else f"{line}\n"


def _quoted(value: object) -> str:
    if isinstance(value, str) and value.isprintable() and value and " " not in value:
        return value
    return repr(value)


def _iso(timestamp: object) -> str:
    if not isinstance(timestamp, float | int):
        return str(timestamp)
    second, fraction = divmod(timestamp, 1)
    return f"{_iso_second(int(second))}.{int(fraction * 1_000_000):06d}Z"


@lru_cache(maxsize=4)
def _iso_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
