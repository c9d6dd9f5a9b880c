"""The registry: agents by name, in order."""

from collections.abc import AsyncIterator

import pytest

from turnline.agent import Agent, AgentRegistry, Reply, Turn
from turnline.errors import ConfigurationError, UnknownAgentError
from turnline.protocol import ChatEvent


class Named:
    description = ""

    def __init__(self, name: str) -> None:
        self.name = name

    async def run(self, turn: Turn) -> AsyncIterator[ChatEvent | Reply]:
        yield Reply(text=self.name)


def registry_of(*names: str) -> tuple[AgentRegistry, list[Agent]]:
    registry = AgentRegistry()
    agents: list[Agent] = [Named(name) for name in names]
    for agent in agents:
        registry.register(agent)
    return registry, agents


def test_the_first_agent_registered_answers_requests_that_name_none() -> None:
    registry, agents = registry_of("b", "a")

    assert registry.get("") is agents[0]
    assert registry.get() is agents[0]
    assert registry.get("a") is agents[1]


def test_names_are_in_order_of_registration() -> None:
    registry, _ = registry_of("b", "a", "c")

    assert registry.names() == ("b", "a", "c")


@pytest.mark.parametrize("name", ["", "secret", "internal "])
def test_an_unknown_agent_is_refused_without_naming_others(name: str) -> None:
    registry, _ = registry_of("internal") if name else registry_of()

    with pytest.raises(UnknownAgentError) as caught:
        registry.get(name)

    assert caught.value.message == "No agent available"


def test_a_name_is_registered_once() -> None:
    registry, agents = registry_of("a")

    with pytest.raises(ConfigurationError, match="'a': this name is registered already"):
        registry.register(Named("a"))

    assert registry.get("a") is agents[0]


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 300])
def test_a_name_nobody_could_ask_for_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="the name"):
        AgentRegistry().register(Named(name))
