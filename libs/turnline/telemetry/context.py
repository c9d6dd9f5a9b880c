"""The ids that every log line of a turn carries, bound once instead of passed along.

They live in a context variable, so tasks and `asyncio.to_thread` calls started inside the block
carry them too.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, Token
from types import MappingProxyType, TracebackType

from turnline.telemetry.names import BOUND_FIELDS
from turnline.telemetry.schema import UndeclaredError

_NOTHING: Mapping[str, str | int] = MappingProxyType({})
_ALLOWED = frozenset(BOUND_FIELDS)

_bound: ContextVar[Mapping[str, str | int]] = ContextVar("turnline_bound", default=_NOTHING)


def bound_fields() -> Mapping[str, str | int]:
    """The ids bound here and now."""
    return _bound.get()


@contextmanager
def bind(**fields: str | int) -> Iterator[None]:
    """Add ids to all log lines of the block; the innermost wins.

    Leave the block in the task that entered it.

    Raises:
        UndeclaredError: a field is not one of `names.BOUND_FIELDS`.
    """
    if not fields.keys() <= _ALLOWED:
        raise UndeclaredError(f"cannot bind {sorted(fields.keys() - _ALLOWED)}")
    token = _bound.set({**_bound.get(), **fields})
    try:
        yield
    finally:
        _bound.reset(token)


class bind_turn:
    """Name the turn in all log lines of a block; an `attempt` of 0 is left out.

    A class, as are other blocks that every turn enters: a generator costs several times as much.
    """

    __slots__ = ("_fields", "_token")

    def __init__(self, *, request_id: str, session_id: str, attempt: int = 0) -> None:
        self._fields: dict[str, str | int] = {"request_id": request_id, "session_id": session_id}
        if attempt:
            self._fields["attempt"] = attempt

    def __enter__(self) -> None:
        self._token: Token[Mapping[str, str | int]] = _bound.set({**_bound.get(), **self._fields})

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _bound.reset(self._token)
