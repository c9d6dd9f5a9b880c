"""Adapters need their frameworks; nothing else does."""

import importlib
import subprocess
import sys

import pytest

FRAMEWORKS = ("agents", "langchain_core", "langgraph", "openai")


@pytest.mark.parametrize(
    ("adapter", "package", "extra"),
    [
        ("turnline.agent.openai", "agents", "turnline[openai]"),
        ("turnline.agent.langgraph", "langchain_core.messages", "turnline[langgraph]"),
    ],
)
def test_an_adapter_without_its_framework_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch, adapter: str, package: str, extra: str
) -> None:
    monkeypatch.delitem(sys.modules, adapter, raising=False)
    monkeypatch.setitem(sys.modules, package, None)

    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module(adapter)

    assert extra in str(caught.value)


def test_the_room_itself_loads_no_framework() -> None:
    code = f"import sys, turnline.agent; print([f for f in {FRAMEWORKS} if f in sys.modules])"

    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert done.stdout.strip() == "[]"
