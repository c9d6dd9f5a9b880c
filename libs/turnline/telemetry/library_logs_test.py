"""How lines of libraries and agents come out."""

import io
import json
import logging

import pytest

from turnline.telemetry import configure_logging
from turnline.telemetry.library_logs import LibraryHandler


def _configure(
    level: str = "info", library_level: str = "info", *, access_log: bool = False
) -> io.StringIO:
    """Set logging up as in a process whose root logger nobody has touched."""
    stream = io.StringIO()
    logging.getLogger().handlers = []
    configure_logging(
        level, "json", library_level=library_level, stream=stream, access_log=access_log
    )
    return stream


def _messages(stream: io.StringIO) -> list[str]:
    return [json.loads(line)["message"] for line in stream.getvalue().splitlines()]


def test_an_agents_line_has_the_ids_and_shape_of_turnlines_own() -> None:
    stream = _configure()

    logging.getLogger("my.agent").warning("model %s is slow", "m")

    line = json.loads(stream.getvalue())
    assert line["event"] == "library.message"
    assert line["logger"] == "my.agent"
    assert line["level"] == "warning"
    assert line["message"] == "model m is slow"


def test_a_socket_url_with_a_token_is_written_without_it() -> None:
    stream = _configure()

    logging.getLogger("uvicorn.error").warning('"WebSocket %s" refused', "/ws?token=hunter2")

    assert _messages(stream) == ['"WebSocket /ws?token=[redacted]" refused']


@pytest.mark.parametrize("name", ["websockets.server", "httpx", "httpcore.http11", "uvicorn"])
def test_debug_does_not_open_libraries_that_write_payloads(name: str) -> None:
    stream = _configure("debug", "debug")

    logging.getLogger(name).info("> TEXT 'a pony'")

    assert stream.getvalue() == ""


def test_lines_of_libraries_have_a_level_of_their_own() -> None:
    stream = _configure(level="error", library_level="info")

    logging.getLogger("my.agent").debug("no")
    logging.getLogger("my.agent").info("yes")
    logging.getLogger("my.agent").log(logging.WARNING + 5, "between")

    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["level"], line["message"]) for line in lines] == [
        ("info", "yes"),
        ("warning", "between"),
    ]


def test_there_is_no_access_log_unless_asked_for() -> None:
    stream = _configure()
    logging.getLogger("uvicorn.access").info("GET /")
    assert stream.getvalue() == ""

    stream = _configure(access_log=True)
    logging.getLogger("uvicorn.access").info("GET /")
    assert _messages(stream) == ["GET /"]


def test_configuring_twice_writes_each_line_once() -> None:
    stream = _configure()
    configure_logging("info", "json", library_level="info", stream=stream)

    logging.getLogger("my.agent").info("once")

    assert _messages(stream) == ["once"]


def test_an_application_that_set_up_logging_keeps_its_root() -> None:
    own = logging.NullHandler()
    logging.getLogger().handlers = [own]

    configure_logging("info", "json", stream=io.StringIO())

    assert logging.getLogger().handlers == [own]


def test_an_exception_of_a_library_is_shown_by_type() -> None:
    stream = _configure()

    try:
        int("a pony")
    except ValueError:
        logging.getLogger("my.agent").exception("it broke")

    assert json.loads(stream.getvalue())["exception_type"] == "ValueError"
    assert "invalid literal" not in stream.getvalue()


def test_a_line_whose_arguments_do_not_fit_goes_to_the_handlers_fault_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _configure()
    told: list[str] = []
    monkeypatch.setattr(LibraryHandler, "handleError", lambda _, record: told.append(record.msg))

    logging.getLogger("my.agent").warning("%d", "x")

    assert told == ["%d"]
