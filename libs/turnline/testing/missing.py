"""What becomes of a test that lacks a tool: it fails in CI, and is skipped elsewhere.

CI is told by the variable `CI`, which `.ci/run` sets: what is not there is a fault then.
"""

import os
from typing import NoReturn

import pytest


def missing(reason: str) -> NoReturn:
    """Fail in CI, else skip the running test; `reason` says what is not there and how to get it."""
    if os.environ.get("CI"):  # noqa: TID251 - of the machine, not of Turnline
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
