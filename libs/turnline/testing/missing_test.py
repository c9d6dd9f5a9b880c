"""A test that cannot run fails in CI, and says why elsewhere."""

import pytest

from turnline.testing.missing import missing


def test_it_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")

    with pytest.raises(pytest.fail.Exception, match="no such tool"):
        missing("no such tool")


@pytest.mark.parametrize("value", ["", None])
def test_it_is_skipped_elsewhere(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("CI", raising=False)
    if value is not None:
        monkeypatch.setenv("CI", value)

    with pytest.raises(pytest.skip.Exception, match="no such tool"):
        missing("no such tool")
