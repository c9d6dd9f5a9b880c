"""Exceptions as text for the log: types and frames always, messages only where they are safe.

The message of a stranger's exception may hold anything, a validation error's for one quotes its
input, so with `messages=False` it is left out.  Turnline's own errors hold no prompt by contract
(`turnline.errors.tree`) and keep theirs.
"""

import traceback

from turnline.errors import TurnlineError
from turnline.telemetry.redaction import scrub

_CAUSE = "\nThe above exception was the direct cause of the following exception:\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n"
_MAX_LINKS = 10
_MAX_FRAMES = 50


def type_name(error: BaseException) -> str:
    """The dotted name of an exception's type; builtins go without their module."""
    kind = type(error)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def format_exception(error: BaseException, *, messages: bool) -> str:
    """Render an exception with its causes, oldest first, and the members of groups below it.

    Args:
        messages: whether to show the messages of exceptions that are not Turnline's.
    """
    lines: list[str] = []
    _add_chain(lines, error, messages=messages)
    return "\n".join(lines)


def _add_chain(lines: list[str], error: BaseException, *, messages: bool) -> None:
    for one, joint in reversed(_chain(error)):
        if one.__traceback__ is not None:
            lines.append("Traceback (most recent call last):")
            frames = traceback.format_tb(one.__traceback__, limit=-_MAX_FRAMES)
            lines.extend(frame.rstrip("\n") for frame in frames)
        lines.append(_headline(one, messages=messages))
        if isinstance(one, BaseExceptionGroup):
            for number, member in enumerate(one.exceptions[:_MAX_LINKS], start=1):
                inner: list[str] = []
                _add_chain(inner, member, messages=messages)
                lines.append(f"  [{number} of {len(one.exceptions)}]")
                lines.extend(f"  {line}" for text in inner for line in text.split("\n"))
        if joint:
            lines.append(joint)


def _chain(error: BaseException) -> list[tuple[BaseException, str]]:
    """The exception and what led to it, newest first, each with the words that follow it."""
    chain: list[tuple[BaseException, str]] = []
    joint = ""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen and len(chain) < _MAX_LINKS:
        seen.add(id(one))
        chain.append((one, joint))
        if one.__cause__ is not None:
            one, joint = one.__cause__, _CAUSE
        elif one.__context__ is not None and not one.__suppress_context__:
            one, joint = one.__context__, _CONTEXT
        else:
            one = None
    return chain


def _headline(error: BaseException, *, messages: bool) -> str:
    if messages or isinstance(error, TurnlineError):
        text = scrub(_message(error))
        return f"{type_name(error)}: {text}" if text else type_name(error)
    return type_name(error)


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a stranger's __str__ must not turn a log line into a fault
        return "(its message cannot be read)"
