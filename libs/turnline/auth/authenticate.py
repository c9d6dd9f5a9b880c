"""Turns a token into an identity by asking the application's validator.

Neither a refusal nor a log line ever holds the token, whatever the validator raises.
"""

import asyncio
import contextvars
import inspect
import math
import traceback
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from turnline.auth.port import USER_ID_CLAIM, AuthValidator, Context, Identity, ValidationResult
from turnline.errors import InvalidRequestError, UnauthenticatedError
from turnline.protocol import check_id
from turnline.telemetry import get_logger

DEADLINE_SECONDS = 10.0
MAX_THREADS = 16

TOKEN_REQUIRED = "Authentication token is required"
FAILED = "Authentication failed"
USER_ID_REQUIRED = f"'{USER_ID_CLAIM}' claim is required in token"

_log = get_logger("auth")


async def authenticate(
    validator: AuthValidator,
    token: str | None,
    context: Context | None = None,
    *,
    timeout: float = DEADLINE_SECONDS,
) -> Identity:
    """Ask `validator` who the bearer of `token` is.

    Args:
        token: None or blank means the caller sent none.
        context: handed to the validator as it is.
        timeout: seconds the validator may take.  A plain method that takes longer keeps its
            thread until it returns, one of MAX_THREADS.

    Raises:
        UnauthenticatedError: no token, a refusal, no usable `userId` claim, or a validator that
            raised or took too long.
    """
    if token is None or not token.strip():
        raise UnauthenticatedError(TOKEN_REQUIRED)
    result = await _judge(validator, token.strip(), context, timeout)
    if not result.is_valid:
        _log.info("auth.refused", reason="validator")
        raise UnauthenticatedError(_without(token, result.error_msg) or FAILED)
    return _identity(result)


async def _judge(
    validator: AuthValidator, token: str, context: Context | None, timeout: float
) -> ValidationResult:
    try:
        async with asyncio.timeout(timeout):
            result = await _call(validator, token, context)
    except Exception as error:  # noqa: BLE001 - the application's code; all it raises is a refusal
        _log.warning("auth.validator_failed", reason=_where(error))
        # Not chained: the text of what was raised may quote the token.
        raise UnauthenticatedError(FAILED) from None
    if not isinstance(result, ValidationResult):
        _log.warning(
            "auth.validator_failed", reason=f"returned {type(result).__name__}, no ValidationResult"
        )
        raise UnauthenticatedError(FAILED)
    return result


async def _call(validator: AuthValidator, token: str, context: Context | None) -> object:
    if inspect.iscoroutinefunction(validator.validate):
        return await validator.validate(token, context)
    run = contextvars.copy_context().run
    loop = asyncio.get_running_loop()
    result: object = await loop.run_in_executor(_threads(), run, validator.validate, token, context)
    return await result if inspect.isawaitable(result) else result


@cache
def _threads() -> ThreadPoolExecutor:
    """Threads of their own, so that a hung validator starves no other part of the process."""
    return ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="turnline-auth")


def _identity(result: ValidationResult) -> Identity:
    claims = dict(result.claims or {})
    user_id = claims.get(USER_ID_CLAIM)
    if user_id is None or user_id == "":
        _log.info("auth.refused", reason="no user id")
        raise UnauthenticatedError(USER_ID_REQUIRED)
    try:
        checked = check_id(user_id, field=f"'{USER_ID_CLAIM}' claim")
    except InvalidRequestError as error:
        _log.info("auth.refused", reason="unusable user id")
        raise UnauthenticatedError(error.message) from error
    return Identity(user_id=checked, claims=claims, expires_at=_expiry(result, claims))


def _expiry(result: ValidationResult, claims: Mapping[str, Any]) -> float | None:
    expires_at = claims.get("exp") if result.expires_at is None else result.expires_at
    if isinstance(expires_at, bool) or not isinstance(expires_at, int | float):
        return None
    try:
        seconds = float(expires_at)
    except OverflowError:
        return None
    return seconds if math.isfinite(seconds) else None


def _without(token: str, text: str) -> str:
    return str(text or "").replace(token.strip(), "[token]")


def _where(error: Exception) -> str:
    """The kind and place of an exception, without its text."""
    name = type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, TimeoutError) or not frames:
        return name
    return f"{name} in {frames[-1].name}, line {frames[-1].lineno} of {frames[-1].filename}"
