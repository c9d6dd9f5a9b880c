"""Every release, rendered once."""

from collections.abc import Mapping

import pytest

from helm import tools
from helm.chart import Release, cases, render
from turnline.testing.missing import missing


@pytest.fixture(scope="session", autouse=True)
def _helm() -> None:
    if reason := tools.why_not():
        missing(f"the chart is not checked: {reason}")
    tools.fetched()


@pytest.fixture(scope="session")
def releases(_helm: None) -> Mapping[str, Release]:
    return {name: render(values) for name, values in cases().items()}
