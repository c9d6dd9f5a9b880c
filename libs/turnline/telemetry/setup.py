"""Setting up the logs of a process, from `main`."""

import sys
import time
from collections.abc import Callable, Sequence
from typing import TextIO

from turnline.errors import ConfigurationError
from turnline.telemetry.library_logs import route_library_logs
from turnline.telemetry.logs import LEVELS, Output, use_output
from turnline.telemetry.sinks import Format, stream_sink


def configure_logging(
    level: str = "info",
    fmt: Format = "auto",
    *,
    library_level: str = "warning",
    stream: TextIO | None = None,
    service: str = "",
    strict: bool = False,
    exception_messages: bool | None = None,
    access_log: bool = False,
    clock: Callable[[], float] = time.time,
) -> None:
    """Set what this process logs and where to; call it once, in `main`, or again to change it.

    Lines of libraries and of agents that use the `logging` module come out in the same shape.
    Writing is synchronous: a reader of `stream` that stalls stalls the process.

    Args:
        level: the lowest level written of Turnline's own lines: debug, info, warning, error or
            critical, in any case.
        library_level: the same for all others; libraries known to write payloads below `warning`
            stay at it.
        fmt: `json`, `console`, or `auto`: console on a terminal, else JSON.
        stream: None is whatever `sys.stderr` is when a line is written.
        service: added to each line as `service`; empty adds nothing.
        strict: raise UndeclaredError for events and fields that are not declared (for tests).
        exception_messages: show the messages of exceptions that are not Turnline's own.  They may
            quote a prompt, so None shows them on a console and not in JSON.
        access_log: have uvicorn write a line per request, its tokens cut out.

    Raises:
        ConfigurationError: no such level or format.
    """
    if faults := _faults((level, library_level), fmt):
        raise ConfigurationError(faults)
    form = fmt if fmt != "auto" else _fitting(sys.stderr if stream is None else stream)
    use_output(
        Output(
            level=LEVELS[level.lower()],
            sink=stream_sink(stream, form),
            base={"service": service} if service else {},
            messages=form == "console" if exception_messages is None else exception_messages,
            strict=strict,
            clock=clock,
        )
    )
    route_library_logs(LEVELS[library_level.lower()], access_log=access_log)


def _faults(levels: Sequence[str], fmt: str) -> list[str]:
    faults = [
        f"log level {name!r} is unknown; use one of {', '.join(LEVELS)}"
        for name in levels
        if name.lower() not in LEVELS
    ]
    if fmt not in ("json", "console", "auto"):
        faults.append(f"log format {fmt!r} is unknown; use json, console or auto")
    return faults


def _fitting(stream: TextIO) -> Format:
    return "console" if stream.isatty() else "json"
