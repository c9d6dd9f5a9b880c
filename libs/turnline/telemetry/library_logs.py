"""Lines of libraries and agents, which use the `logging` module, in the shape of Turnline's own.

Some libraries write what must not be written: uvicorn the URL of a socket with its token,
websockets every frame, HTTP clients their headers.  Their levels have a floor here that no setting
goes below.
"""

import logging

from turnline.telemetry.logs import LEVELS, Logger, get_logger

_SILENT = logging.CRITICAL + 10

# Top loggers of libraries -> the lowest level that holds no payload and no credential.
_FLOORS = {
    "aiobotocore": logging.WARNING,
    "asyncio": logging.WARNING,
    "boto3": logging.WARNING,
    "botocore": logging.WARNING,
    "grpc": logging.WARNING,
    "hpack": logging.WARNING,
    "httpcore": logging.WARNING,
    "httpx": logging.WARNING,
    "nats": logging.WARNING,
    "openai": logging.WARNING,
    "opentelemetry": logging.WARNING,
    "urllib3": logging.WARNING,
    "uvicorn": logging.WARNING,
    "uvicorn.error": logging.WARNING,
    "websockets": logging.WARNING,
}
_ACCESS = "uvicorn.access"

# The loggers whose handlers and levels `route_library_logs` replaces; it may also set up the root.
ROUTED = (*_FLOORS, _ACCESS)


class LibraryHandler(logging.Handler):
    """Writes records of the `logging` module as `library.message` events."""

    def __init__(self) -> None:
        super().__init__()
        self._log: Logger = get_logger("library")

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; one whose arguments do not fit its text goes to `handleError`."""
        try:
            message = record.getMessage()
        except (TypeError, ValueError, KeyError):
            self.handleError(record)
            return
        error = record.exc_info[1] if record.exc_info else None
        self._log.always(
            _level_name(record.levelno),
            "library.message",
            logger=record.name,
            message=message,
            exc_info=error,
        )


def route_library_logs(level: int, *, access_log: bool = False) -> None:
    """Send the lines of libraries and agents through Turnline's logging.

    The root logger, where agents' lines arrive, gets the handler and the level only if it has no
    handler yet, so an application that set up its own logging keeps it.  The libraries that
    Turnline itself uses are routed in any case, because of what they would write.

    Args:
        level: the lowest level taken, in numbers of the `logging` module; the floors of this
            module are not undercut.
        access_log: have uvicorn write a line per request, its tokens cut out.
    """
    root = logging.getLogger()
    if all(isinstance(handler, LibraryHandler) for handler in root.handlers):
        root.handlers = [LibraryHandler()]
        root.setLevel(level)
    levels = {name: max(level, floor) for name, floor in _FLOORS.items()}
    levels[_ACCESS] = logging.INFO if access_log else _SILENT
    for name, lowest in levels.items():
        library = logging.getLogger(name)
        library.handlers = [LibraryHandler()]
        library.propagate = False
        library.setLevel(lowest)


def _level_name(level: int) -> str:
    """The name of the highest of our levels that is not above `level`."""
    fitting = [name for name, number in LEVELS.items() if number <= level]
    return fitting[-1] if fitting else "debug"
