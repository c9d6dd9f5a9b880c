"""What the OpenAI Agents SDK's errors mean for a turn."""

import agents as sdk
import openai

from turnline.agent.answers import AgentContractError
from turnline.agent.port import AgentError, FatalAgentError, RetryableAgentError
from turnline.agent.provider_errors import of_status

VENDOR_ERRORS = (openai.OpenAIError, sdk.AgentsException)


def translated(agent: str, error: Exception) -> AgentError:
    """Give the agent error for one of `VENDOR_ERRORS`."""
    match error:
        case openai.APIStatusError():
            return of_status(error.status_code, code=error.code, headers=error.response.headers)
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
