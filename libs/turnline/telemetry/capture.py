"""Log lines as values, for tests."""

from collections.abc import Iterator
from contextlib import contextmanager

from turnline.telemetry.logs import DEBUG, Output, current_output, use_output
from turnline.telemetry.sinks import Record


@contextmanager
def captured_logs(*, level: int = DEBUG) -> Iterator[list[Record]]:
    """Collect the records of the block, oldest first, instead of writing them.

    Strict: an event or field that is not declared raises UndeclaredError where it is written.  A
    record has `event`, `level`, `room`, `timestamp`, the bound ids and the event's fields.
    """
    records: list[Record] = []
    before = current_output()
    use_output(Output(level=level, sink=records.append, strict=True))
    try:
        yield records
    finally:
        use_output(before)
