"""What every topic of the suite shares: its fixtures, and how declared differences are met.

An adapter's declared difference makes the named case an expected failure.  It still runs: should it
pass, the difference is out of date and the case fails until the declaration is removed.
"""

import warnings

import pytest

from turnline.testing.conformance.transport.harness import TransportHarness
from turnline.testing.conformance.transport.rig import RigMaker, Side, rig_maker


class DeclaredDifferenceWarning(UserWarning):
    """An adapter does not meet a case and says so; shown in the summary of every run."""


class Topic:
    """Base of the topics; an adapter's subclass overrides `harness`."""

    @pytest.fixture
    def harness(self) -> TransportHarness:
        """The adapter under test."""
        raise NotImplementedError("override the `harness` fixture with one for your transport")

    @pytest.fixture(params=["input", "output"])
    def side(self, request: pytest.FixtureRequest) -> Side:
        """Which queue of the transport; cases that ask for `rig` run on both."""
        side: Side = request.param
        return side

    @pytest.fixture
    def rig(self, harness: TransportHarness, side: Side) -> RigMaker:
        """Rigs over the input queue, then over the output queue."""
        return rig_maker(harness, side)

    @pytest.fixture
    def input_rig(self, harness: TransportHarness) -> RigMaker:
        """Rigs over the input queue, for cases to which the side makes no difference."""
        return rig_maker(harness, "input")

    @pytest.fixture
    def output_rig(self, harness: TransportHarness) -> RigMaker:
        """Rigs over the output queue, for cases about answers."""
        return rig_maker(harness, "output")

    @pytest.fixture(autouse=True)
    def declared_differences(
        self, request: pytest.FixtureRequest, harness: TransportHarness
    ) -> None:
        """Expect a case to fail if the adapter declares that it does."""
        names = {request.node.name, request.node.originalname}
        for case, reason in harness.capabilities.differences:
            if case in names:
                warnings.warn(DeclaredDifferenceWarning(f"{case}: {reason}"), stacklevel=1)
                request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
