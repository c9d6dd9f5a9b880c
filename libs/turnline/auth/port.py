"""What an application implements to authenticate its callers, and what comes out of it."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any

USER_ID_CLAIM = "userId"

Context = Mapping[str, Any]
"""What is known of the request: its `surface` is `rest`, `websocket` or `grpc`."""


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """A validator's verdict on one token.

    Attributes:
        is_valid: whether the token is accepted.
        claims: what the token says of its bearer; an accepted one must hold `userId`.
        error_msg: why it is refused, shown to the caller as it is; empty shows a general text.
        expires_at: seconds since the epoch at which the token ends; None takes the `exp` claim.
    """

    is_valid: bool
    claims: Mapping[str, Any] = field(default_factory=dict)
    error_msg: str = ""
    expires_at: float | None = None


class AuthValidator(ABC):
    """Checks bearer tokens; subclass it (guide).

    `validate` may be a plain or an async method.  A plain one runs in a thread, several at once,
    and may block; an async one runs on the event loop and may not.  Both have a deadline, after
    which the caller is refused.
    """

    @abstractmethod
    def validate(
        self, token: str, context: Context | None = None
    ) -> ValidationResult | Awaitable[ValidationResult]:
        """Judge one token.

        Args:
            token: never empty.
            context: what is known of the request; None when nothing is.

        Returns:
            A refusal as `ValidationResult(is_valid=False)`; anything raised is a refusal too.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who a caller is.

    Attributes:
        user_id: a valid id (`turnline.protocol.check_id`).
        claims: all claims of the token.
        expires_at: seconds since the epoch at which the token ends; None means never.
    """

    user_id: str
    claims: Mapping[str, Any]
    expires_at: float | None = None
