"""The agent runner's container of an installation with `execution_mode = "stream"`."""

import docs_agent.agent  # noqa: F401 - registers the agent
from turnline.aws import ECSStreamAgentRunner

handler = ECSStreamAgentRunner.run

if __name__ == "__main__":
    handler()
