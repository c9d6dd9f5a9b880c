"""The OpenAI example starts with a key and says what is missing without one."""

import importlib
import sys

import pytest

from turnline.agent import default_registry


@pytest.fixture(autouse=True)
def imported_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "openai_agent.agent", raising=False)


def test_without_a_key_it_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    with pytest.raises(SystemExit) as caught:
        importlib.import_module("openai_agent.agent")

    assert "OPENAI_API_KEY is not set" in str(caught.value)


def test_with_a_key_its_agent_is_registered_and_its_tool_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")

    example = importlib.import_module("openai_agent.agent")

    assert default_registry.get("clock").description == "Knows what time it is anywhere"
    assert example.time_in("Nowhere/Land") == "there is no time zone 'Nowhere/Land'"
    assert ":" in example.time_in("UTC")
