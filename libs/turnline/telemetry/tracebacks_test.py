"""How exceptions look in the log."""

from turnline.errors import TransportUnavailableError
from turnline.telemetry.tracebacks import format_exception


def _raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as caught:  # noqa: BLE001 - made to be looked at
        return caught


def test_a_cause_comes_first_without_its_message() -> None:
    try:
        try:
            int("a pony")
        except ValueError as error:
            raise TransportUnavailableError("the broker did not confirm") from error
    except TransportUnavailableError as error:
        text = format_exception(error, messages=False)

    first, last = text.split("direct cause of the following exception")
    assert first.rstrip().split("\n")[-3] == "ValueError"
    assert "invalid literal" not in text
    assert last.endswith("TransportUnavailableError: the broker did not confirm")


def test_members_of_a_group_are_shown_below_it() -> None:
    group = _raised(ExceptionGroup("two", [_raised(ValueError("a")), KeyError("b")]))

    text = format_exception(group, messages=False)

    assert "  [1 of 2]\n" in text
    assert text.endswith("  [2 of 2]\n  KeyError")


def test_messages_of_strangers_appear_only_when_asked_for() -> None:
    assert format_exception(ValueError("a pony"), messages=True) == "ValueError: a pony"
    assert format_exception(ValueError("a pony"), messages=False) == "ValueError"


def test_a_circle_of_causes_ends() -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one

    assert format_exception(one, messages=True).count("ValueError") == 2
