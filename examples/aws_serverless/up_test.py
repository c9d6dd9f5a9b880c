"""The example does what its README says."""

from pathlib import Path

import pytest

from aws_local.checks import (
    check_that_it_answers_and_ends,
    check_that_it_may_be_ended_at_once,
    check_that_it_may_be_ended_while_it_starts,
    check_that_once_is_enough,
)

HERE = Path(__file__).absolute().parent
# All processes start anew for each, on a machine that may be busy.
pytestmark = pytest.mark.timeout(280)


async def test_it_answers_in_every_client_mode_and_leaves_nothing_behind(tmp_path: Path) -> None:
    # Seven functions, ElasticMQ and moto.
    await check_that_it_answers_and_ends(HERE, tmp_path, processes=9)


async def test_it_may_ask_in_every_mode_and_end(tmp_path: Path) -> None:
    await check_that_once_is_enough(HERE, tmp_path)


async def test_told_to_stop_while_it_starts_it_leaves_nothing_behind(tmp_path: Path) -> None:
    await check_that_it_may_be_ended_while_it_starts(HERE, tmp_path)


async def test_told_to_stop_at_once_it_starts_nothing(tmp_path: Path) -> None:
    await check_that_it_may_be_ended_at_once(HERE, tmp_path)
