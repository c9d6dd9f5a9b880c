"""Adapters are loaded by name, and a missing one is told from a broken one."""

import sys
from pathlib import Path

import pytest

from turnline.config import load_adapter


def _module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> dict[str, str]:
    (tmp_path / "an_adapter.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "an_adapter", raising=False)
    return {"here": "an_adapter", "away": "turnline.no_such_adapter"}


def test_an_adapter_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = _module(tmp_path, monkeypatch, "name = 'me'")

    adapter = load_adapter(modules, "here")

    assert adapter is not None
    assert adapter.name == "me"


@pytest.mark.parametrize("name", ["away", "unheard-of"])
def test_a_missing_adapter_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    assert load_adapter(_module(tmp_path, monkeypatch, ""), name) is None


def test_an_adapter_whose_library_is_missing_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = _module(tmp_path, monkeypatch, "import a_library_that_is_not_installed")

    assert load_adapter(modules, "here") is None


def test_a_broken_adapter_is_told_from_a_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modules = _module(tmp_path, monkeypatch, "import turnline.no_such_room")

    with pytest.raises(ImportError, match="no_such_room"):
        load_adapter(modules, "here")
