"""A run of another language's tests passes only when tests ran, and all passed."""

import sys
from pathlib import Path

import pytest

from clients.testing.runner import need, run_tests

PASSED = r"^. pass (\d+)$"


async def ran(folder: Path, code: str, passed: str = PASSED) -> None:
    await run_tests([sys.executable, "-c", code], folder, {"OF_THE_TEST": "1"}, passed)


async def test_tests_that_passed_are_counted_by_their_number_or_their_lines(tmp_path: Path) -> None:
    await ran(tmp_path, "print('# pass 2')")
    await ran(tmp_path, "print('--- PASS: A')", passed="^--- PASS: ")


async def test_a_runner_is_given_its_environment(tmp_path: Path) -> None:
    await ran(tmp_path, "import os; print('# pass', os.environ['OF_THE_TEST'])")


@pytest.mark.parametrize("said", ["# pass 0", "no test files"])
async def test_a_runner_without_tests_fails(tmp_path: Path, said: str) -> None:
    with pytest.raises(AssertionError, match="no test passed"):
        await ran(tmp_path, f"print({said!r})")


async def test_a_runner_that_fails_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(AssertionError, match="ended with 3"):
        await ran(tmp_path, "print('# pass 2'); raise SystemExit(3)")

    assert "# pass 2" in capsys.readouterr().out


def test_a_tool_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    need("python3")

    with pytest.raises(pytest.fail.Exception, match="no-such-tool is not on the PATH"):
        need("python3", "no-such-tool")
