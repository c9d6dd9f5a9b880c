"""What the SDK's and the provider's errors mean for a turn.

Texts here reach callers, so none holds the provider's own text, which may quote prompts or keys.
"""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import agents as sdk
import openai

from turnline.agent.answers import AgentContractError
from turnline.agent.port import AgentError, FatalAgentError, RetryableAgentError

VENDOR_ERRORS = (openai.OpenAIError, sdk.AgentsException)
MAX_RETRY_AFTER_SECONDS = 3600.0


def translated(agent: str, error: Exception) -> AgentError:
    """Give the agent error for one of `VENDOR_ERRORS`."""
    match error:
        case openai.APIStatusError():
            return _of_status(error)
        case openai.APIError():  # no connection, a time-out, or an error in mid-stream
            return RetryableAgentError(f"the model provider failed: {type(error).__name__}")
        case openai.OpenAIError():
            return FatalAgentError("The agent's access to its model is not set up")
        case sdk.MaxTurnsExceeded():
            return FatalAgentError("The agent took too many steps")
        case sdk.InputGuardrailTripwireTriggered() | sdk.ToolInputGuardrailTripwireTriggered():
            return FatalAgentError("The agent does not take this request", status_code=400)
        case sdk.OutputGuardrailTripwireTriggered() | sdk.ToolOutputGuardrailTripwireTriggered():
            return FatalAgentError("The agent's answer was withheld")
        case sdk.ModelRefusalError():
            return FatalAgentError("The model refused to answer", status_code=400)
        case sdk.UserError():
            return AgentContractError(agent, f"uses the SDK in a way it refuses: {error.message}")
        case _:
            return RetryableAgentError(f"the SDK failed: {type(error).__name__}")


def _of_status(error: openai.APIStatusError) -> AgentError:
    status = error.status_code
    if status == 429 and error.code == "insufficient_quota":
        return FatalAgentError("The model provider's quota is used up", status_code=503)
    if status == 429:
        return RetryableAgentError(
            "the model provider's rate limit is reached",
            retry_after=retry_after_seconds(error.response.headers),
            spends_attempt=False,
        )
    if status >= 500 or status in (408, 409):
        return RetryableAgentError(
            f"the model provider answered {status}",
            retry_after=retry_after_seconds(error.response.headers),
        )
    if error.code == "context_length_exceeded":
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
