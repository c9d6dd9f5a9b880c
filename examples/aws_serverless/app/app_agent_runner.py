"""Function `agent-runner`: agents are registered here alone, by importing what defines them."""

import docs_agent.agent  # noqa: F401 - registers the agent
from turnline.aws import ServerlessAgentRunner

handler = ServerlessAgentRunner.handle
