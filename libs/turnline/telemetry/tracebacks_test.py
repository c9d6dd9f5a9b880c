"""How exceptions look in the log."""

from turnline.errors import TransportUnavailableError
from turnline.telemetry.tracebacks import format_exception


def _raise(error: Exception) -> None:
    raise error


def _raised(error: Exception) -> Exception:
    try:
        _raise(error)
    except Exception as caught:  # noqa: BLE001 - made to be looked at
        return caught
    return error


def test_a_cause_comes_first_without_its_message() -> None:
    error = TransportUnavailableError("the broker did not confirm")
    error.__cause__ = _raised(ValueError("a pony".upper()))

    text = format_exception(_raised(error), messages=False)

    first, last = text.split("direct cause of the following exception")
    assert first.rstrip().split("\n")[-3] == "ValueError"
    assert "A PONY" not in text
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


def test_an_exception_whose_message_raises_is_shown_by_its_type() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    text = format_exception(Unspeakable(), messages=True)

    assert text.endswith("Unspeakable: (its message cannot be read)")
