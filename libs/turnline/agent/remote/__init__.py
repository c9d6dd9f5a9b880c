"""Agents in a process of their own, in any language, over `AgentService` (gRPC).

`RemoteAgents` is the runner's side: agents of a host, registered under their names.  `AgentHost` is
a host of agents written in Python.  Both need `grpcio`.
"""

from turnline.agent.remote.client import RemoteAgent, RemoteAgents, RemoteOptions
from turnline.agent.remote.host import HEARTBEAT_SECONDS, AgentHost

__all__ = [
    "HEARTBEAT_SECONDS",
    "AgentHost",
    "RemoteAgent",
    "RemoteAgents",
    "RemoteOptions",
]
