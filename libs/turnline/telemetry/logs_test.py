"""What a logger writes, and what it refuses to write."""

import io
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from turnline.errors import ConfigurationError, StoreUnavailableError
from turnline.telemetry import (
    UndeclaredError,
    bind,
    bind_turn,
    captured_logs,
    configure_logging,
    get_logger,
)
from turnline.telemetry.sinks import Format

_PROMPT = "my secret wish is a pony"
_log = get_logger("runner")


def _configured(
    level: str = "info",
    fmt: Format = "json",
    *,
    service: str = "",
    clock: Callable[[], float] = time.time,
) -> io.StringIO:
    stream = io.StringIO()
    configure_logging(level, fmt, stream=stream, service=service, clock=clock)
    return stream


def _lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_one_json_object_with_event_level_room_time_and_fields() -> None:
    stream = _configured(clock=lambda: 1_700_000_000.25)

    _log.warning("dependency.unavailable", dependency="session store")

    assert _lines(stream) == [
        {
            "timestamp": "2023-11-14T22:13:20.250000Z",
            "level": "warning",
            "event": "dependency.unavailable",
            "room": "runner",
            "dependency": "session store",
        }
    ]


def test_lines_below_the_level_are_not_written() -> None:
    stream = _configured("warning")

    _log.info("process.ready")
    _log.error("turn.unpublished")

    assert [line["event"] for line in _lines(stream)] == ["turn.unpublished"]


def test_a_logger_made_before_the_configuration_follows_it() -> None:
    early = get_logger("early")

    stream = _configured("debug")
    early.debug("process.ready")

    assert _lines(stream)[0]["room"] == "early"


def test_auto_means_json_where_no_terminal_is() -> None:
    stream = _configured(fmt="auto")

    _log.info("process.ready")

    assert _lines(stream)[0]["event"] == "process.ready"


def test_the_console_shows_time_level_room_event_and_fields_on_one_line() -> None:
    stream = _configured(fmt="console", clock=lambda: 1_700_000_000.25)

    _log.warning("push.unreachable", reason="two words\nand a line")

    assert stream.getvalue() == (
        "22:13:20.250 WARNING  runner: push.unreachable reason='two words\\nand a line'\n"
    )


def test_a_service_name_is_on_every_line() -> None:
    stream = _configured(service="gateway")

    _log.info("process.ready")

    assert _lines(stream)[0]["service"] == "gateway"


def test_unknown_levels_and_formats_are_told_together() -> None:
    with pytest.raises(ConfigurationError) as caught:
        configure_logging("loud", "xml")  # type: ignore[arg-type]  # what a settings file may say

    assert len(caught.value.faults) == 2


def test_bound_ids_are_on_every_line_of_the_block_and_on_none_after_it() -> None:
    with captured_logs() as records:
        with bind_turn(request_id="r", session_id="s", attempt=2), bind(connection_id="c"):
            _log.info("turn.started")
        _log.info("process.ready")

    inside = {"request_id": "r", "session_id": "s", "attempt": 2, "connection_id": "c"}
    assert inside.items() <= records[0].items()
    assert not inside.keys() & records[1].keys()


def test_only_ids_can_be_bound() -> None:
    with pytest.raises(UndeclaredError), bind(prompt=_PROMPT):
        pass


def test_fields_bound_to_a_logger_are_on_its_lines() -> None:
    with captured_logs() as records:
        _log.bind(agent="echo").info("turn.started", fence=3)

    assert records[0]["agent"] == "echo"
    assert records[0]["fence"] == 3


@pytest.mark.parametrize(
    ("event", "fields"), [("turn.exploded", {}), ("process.ready", {"prompt": _PROMPT})]
)
def test_strict_logging_raises_for_what_is_not_declared(
    event: str, fields: dict[str, object]
) -> None:
    with captured_logs() as records, pytest.raises(UndeclaredError):
        _log.info(event, **fields)

    assert records == []


def test_undeclared_events_are_written_where_logging_is_not_strict() -> None:
    stream = _configured()

    _log.info("turn.exploded")

    assert _lines(stream)[0]["event"] == "turn.exploded"


def test_a_prompt_passed_by_mistake_is_blanked() -> None:
    stream = _configured()

    _log.info("turn.exploded", prompt=_PROMPT, request={"prompt": _PROMPT}, token="hunter2")

    line = _lines(stream)[0]
    assert line["prompt"] == line["token"] == line["request"]["prompt"] == "[redacted]"


def test_the_message_of_a_strangers_exception_is_not_in_json() -> None:
    stream = _configured()

    try:
        int(_PROMPT)
    except ValueError as error:
        _log.error("agent.failed", agent="echo", exc_info=error)

    line = _lines(stream)[0]
    assert line["exception_type"] == "ValueError"
    assert "logs_test.py" in line["exception"]
    assert _PROMPT not in stream.getvalue()


def test_the_message_of_a_strangers_exception_is_on_the_console() -> None:
    stream = _configured(fmt="console")

    _log.error("agent.failed", exc_info=ValueError("no such model"))

    assert stream.getvalue().endswith("\nValueError: no such model\n")


def test_turnlines_own_errors_keep_their_message() -> None:
    stream = _configured()

    _log.error("request.failed", exc_info=StoreUnavailableError("no answer in 5 s"))

    assert _lines(stream)[0]["exception"].endswith("StoreUnavailableError: no answer in 5 s")


def test_exc_info_true_takes_the_exception_being_handled() -> None:
    with captured_logs() as records:
        try:
            int("x")
        except ValueError:
            _log.error("agent.failed", exc_info=True)
        _log.error("agent.failed", exc_info=None)

    assert records[0]["exception_type"] == "ValueError"
    assert "exception" not in records[1]


def test_values_json_cannot_hold_do_not_break_the_line() -> None:
    stream = _configured()

    _log.info("stream.gap", first=2**70, last="\ud800")

    assert _lines(stream)[0]["first"] == 2**70


def test_a_closed_stream_does_not_reach_the_caller() -> None:
    stream = _configured()
    stream.close()

    _log.info("process.ready")


def test_capturing_ends_with_its_block() -> None:
    stream = _configured()

    with captured_logs():
        _log.info("process.ready")

    assert stream.getvalue() == ""
    _log.info("process.stopped")
    assert _lines(stream)[0]["event"] == "process.stopped"


class _Null(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


def test_a_line_costs_less_than_a_turn_would_notice() -> None:
    configure_logging("info", "json", stream=_Null())  # type: ignore[arg-type]  # all it needs

    with bind_turn(request_id="r" * 32, session_id="s" * 32, attempt=1):
        emitted = _best(lambda: _log.info("turn.committed", status_code=200, seconds=0.25))
        filtered = _best(lambda: _log.debug("turn.committed", status_code=200, seconds=0.25))

    # Budget: 25 microseconds; the margin is for a busy machine.
    assert emitted < 100e-6
    assert filtered < 5e-6


def _best(call: Callable[[], None]) -> float:
    """Seconds per call in the best of several rounds."""
    rounds = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(500):
            call()
        rounds.append((time.perf_counter() - start) / 500)
    return min(rounds)
