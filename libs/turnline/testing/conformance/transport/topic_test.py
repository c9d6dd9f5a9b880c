"""Declared differences are expected to fail, are shouted about, and may not go stale."""

import pytest

pytest_plugins = ("pytester",)

_ADAPTER = """
from dataclasses import dataclass
import pytest
from turnline.testing.conformance.transport.topic import Topic
from turnline.transport import Capabilities

@dataclass
class Harness:
    capabilities: Capabilities

class TestAdapter(Topic):
    @pytest.fixture
    def harness(self):
        return Harness(Capabilities(differences=(("{case}", "the broker cannot count"),)))

    def test_unmet(self):
        assert False

    @pytest.mark.parametrize("size", ["small", "large"])
    def test_met_when_small(self, size):
        assert size == "small"
"""


def _run(pytester: pytest.Pytester, case: str) -> tuple[dict[str, int], str]:
    pytester.makepyfile(_ADAPTER.replace("{case}", case))
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-rx", "-W", "default")
    return result.parseoutcomes(), result.stdout.str()


def test_a_declared_difference_is_an_expected_failure_with_its_reason(
    pytester: pytest.Pytester,
) -> None:
    outcomes, output = _run(pytester, "test_unmet")
    assert (outcomes["xfailed"], outcomes["failed"]) == (1, 1)
    assert "DeclaredDifferenceWarning: test_unmet: the broker cannot count" in output


def test_one_parameter_of_a_case_can_be_declared(pytester: pytest.Pytester) -> None:
    outcomes, _ = _run(pytester, "test_met_when_small[large]")
    assert (outcomes["xfailed"], outcomes["passed"], outcomes["failed"]) == (1, 1, 1)


def test_a_difference_that_is_none_any_more_fails(pytester: pytest.Pytester) -> None:
    outcomes, output = _run(pytester, "test_met_when_small[small]")
    assert outcomes["failed"] == 3
    assert "XPASS(strict)" in output


def test_without_a_declaration_a_failure_is_a_failure(pytester: pytest.Pytester) -> None:
    outcomes, _ = _run(pytester, "test_something_else")
    assert (outcomes["failed"], outcomes["passed"]) == (2, 1)
