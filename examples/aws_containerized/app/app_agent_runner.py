"""The agent runner's container: agents are registered here alone."""

import docs_agent.agent  # noqa: F401 - registers the agent
from turnline.aws import ECSAgentRunner

handler = ECSAgentRunner.run

if __name__ == "__main__":
    handler()
