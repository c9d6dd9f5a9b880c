"""Agents that live elsewhere: the runner calls the host at `AGENT_HOST` (`name:port`)."""

import os

from turnline.agent.remote import RemoteAgents

RemoteAgents(os.environ.get("AGENT_HOST", "127.0.0.1:9000"), ["shout"])
