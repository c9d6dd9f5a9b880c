"""Callers whom an authorizer of API Gateway has checked already."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from turnline.auth import AuthValidator, Context, ValidationResult
from turnline.auth.port import USER_ID_CLAIM

# Stands where a token is wanted, so that none of the caller's own counts.
CHECKED_HEADER = ("authorization", "Bearer checked-by-api-gateway")

_CLAIMS: ContextVar[Mapping[str, Any]] = ContextVar("_CLAIMS")


class CheckedByGateway(AuthValidator):
    """Takes the caller that API Gateway's authorizer named for this invocation.

    Only for requests of which an authorizer said something: outside `checked` it refuses.
    """

    def __init__(self, user_id_claim: str) -> None:
        """Wire it; `user_id_claim` names the claim that holds the user's id."""
        self._claim = user_id_claim

    async def validate(self, token: str, context: Context | None = None) -> ValidationResult:
        """Judge the caller of the invocation; the token is none."""
        claims = _CLAIMS.get(None)
        if claims is None:
            return ValidationResult(is_valid=False)
        user_id = claims.get(self._claim) or claims.get(USER_ID_CLAIM)
        return ValidationResult(is_valid=True, claims={**claims, USER_ID_CLAIM: user_id})


@contextmanager
def checked(claims: Mapping[str, Any]) -> Iterator[None]:
    """Have `CheckedByGateway` take these claims for the length of the block."""
    token = _CLAIMS.set(claims)
    try:
        yield
    finally:
        _CLAIMS.reset(token)
