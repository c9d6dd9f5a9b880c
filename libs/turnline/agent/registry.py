"""Which agents a process serves, by name."""

from turnline.agent.port import Agent
from turnline.agent.threads import BoundedThreads
from turnline.errors import ConfigurationError, InvalidRequestError, UnknownAgentError
from turnline.protocol import check_id


class AgentRegistry:
    """Agents by name, in the order registered.

    A process has one, `default_registry`; make further ones to keep agents apart (tests do).

    Attributes:
        threads: where this registry's sync agents run; a runner may `resize` it.
    """

    def __init__(self, *, threads: BoundedThreads | None = None) -> None:
        self.threads = threads or BoundedThreads()
        self._agents: dict[str, Agent] = {}

    def register(self, agent: Agent) -> None:
        """Add an agent.

        Raises:
            ConfigurationError: the name is taken, or is no name.
        """
        try:
            name = check_id(agent.name, field="the name")
        except InvalidRequestError as error:
            raise ConfigurationError([f"agent {agent.name!r}: {error.message}"]) from error
        if name in self._agents:
            raise ConfigurationError(
                [f"agent {name!r}: this name is registered already; give one of the two another"]
            )
        self._agents[name] = agent

    def get(self, name: str = "") -> Agent:
        """Give the agent of that name; empty gives the one registered first.

        Raises:
            UnknownAgentError: there is none; the text names no other agent.
        """
        agent = self._found(name)
        if agent is None:
            raise UnknownAgentError
        return agent

    def knows(self, name: str) -> bool:
        """Whether there is an agent of that name; empty asks for any."""
        return self._found(name) is not None

    def names(self) -> tuple[str, ...]:
        """The names, in the order registered."""
        return tuple(self._agents)

    def _found(self, name: str) -> Agent | None:
        return self._agents.get(name) if name else next(iter(self._agents.values()), None)


default_registry = AgentRegistry()
