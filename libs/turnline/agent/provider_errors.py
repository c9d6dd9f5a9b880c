"""What a model provider's HTTP answers mean for a turn, whichever client asked.

Texts here reach callers, so none holds the provider's own text, which may quote prompts or keys.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from turnline.agent.port import AgentError, FatalAgentError, RetryableAgentError

MAX_RETRY_AFTER_SECONDS = 3600.0


def of_status(status: int, *, code: str | None, headers: Mapping[str, str]) -> AgentError:
    """Give the agent error for a provider's answer.

    Args:
        status: HTTP status, 400 or more.
        code: the provider's own code; None when it gave none.
        headers: of the answer; names in any case.
    """
    if status == 429 and code == "insufficient_quota":
        return FatalAgentError("The model provider's quota is used up", status_code=503)
    if status == 429:
        return RetryableAgentError(
            "the model provider's rate limit is reached",
            retry_after=retry_after_seconds(headers),
            spends_attempt=False,
        )
    if status >= 500 or status in (408, 409):
        return RetryableAgentError(
            f"the model provider answered {status}", retry_after=retry_after_seconds(headers)
        )
    if code == "context_length_exceeded":
        return FatalAgentError("The conversation is too long for the model", status_code=413)
    if status in (401, 403):
        return FatalAgentError("The model provider refused the agent's access")
    return FatalAgentError("The model provider refused the request")


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Read how long to wait from `retry-after-ms` or `Retry-After`; None when neither says so.

    A date is compared with the answer's own `Date`, so no clock of ours is asked.
    """
    if (millis := _number(headers.get("retry-after-ms"))) is not None:
        return _bounded(millis / 1000)
    given = headers.get("retry-after")
    if (seconds := _number(given)) is not None:
        return _bounded(seconds)
    until, now = _date(given), _date(headers.get("date"))
    return None if until is None or now is None else _bounded((until - now).total_seconds())


def _date(text: str | None) -> datetime | None:
    try:
        date = parsedate_to_datetime(text or "")
    except ValueError:
        return None
    return date.replace(tzinfo=date.tzinfo or UTC)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _bounded(seconds: float) -> float:
    return min(max(0.0, seconds), MAX_RETRY_AFTER_SECONDS)
