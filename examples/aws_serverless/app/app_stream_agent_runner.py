"""Function `agent-runner` of an installation with `execution_mode = "stream"`."""

import docs_agent.agent  # noqa: F401 - registers the agent
from turnline.aws import ServerlessStreamAgentRunner

handler = ServerlessStreamAgentRunner.handle
