"""Logging of the whole process is set up by these tests; each one leaves it as it was."""

import logging
from collections.abc import Iterator

import pytest

from turnline.telemetry.library_logs import ROUTED
from turnline.telemetry.logs import current_output, use_output


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    output = current_output()
    loggers = [logging.getLogger(), *map(logging.getLogger, ROUTED)]
    states = [(one, one.handlers, one.level, one.propagate) for one in loggers]
    yield
    use_output(output)
    for one, handlers, level, propagate in states:
        one.handlers, one.propagate = handlers, propagate
        one.setLevel(level)
