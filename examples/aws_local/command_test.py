"""The command of an example says what it lacks."""

import pytest

from aws_local.command import MISSING, run


def test_what_is_not_here_is_named_and_ends_it_with_a_code_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def work() -> int:
        pytest.skip("no Java here: install Java 17 or newer")

    code = run(work())

    assert code == MISSING
    assert "install Java 17" in capsys.readouterr().err
