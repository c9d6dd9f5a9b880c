"""Agents: the port, the `@agent` decorator, the registry, and adapters for agent frameworks.

The adapters are modules of their own, each needing its framework: `turnline.agent.openai` and
`turnline.agent.langgraph`.
"""

from turnline.agent.answers import AgentContractError
from turnline.agent.functions import FunctionAgent, agent
from turnline.agent.port import (
    Agent,
    AgentError,
    FatalAgentError,
    Reply,
    RetryableAgentError,
    Turn,
)
from turnline.agent.registry import AgentRegistry, default_registry
from turnline.agent.threads import DEFAULT_MAX_THREADS, BoundedThreads

__all__ = [
    "DEFAULT_MAX_THREADS",
    "Agent",
    "AgentContractError",
    "AgentError",
    "AgentRegistry",
    "BoundedThreads",
    "FatalAgentError",
    "FunctionAgent",
    "Reply",
    "RetryableAgentError",
    "Turn",
    "agent",
    "default_registry",
]
