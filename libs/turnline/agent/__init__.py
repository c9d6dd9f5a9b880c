"""Agents: the port, the `@agent` decorator, the registry, and adapters for agent frameworks."""

from turnline.agent.port import (
    Agent,
    AgentError,
    FatalAgentError,
    Reply,
    RetryableAgentError,
    Turn,
)

__all__ = [
    "Agent",
    "AgentError",
    "FatalAgentError",
    "Reply",
    "RetryableAgentError",
    "Turn",
]
