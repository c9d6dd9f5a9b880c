"""All topics as one suite."""

from turnline.testing.conformance.transport.bounds import BoundCases
from turnline.testing.conformance.transport.concurrency import ConcurrencyCases
from turnline.testing.conformance.transport.consumers import ConsumerCases
from turnline.testing.conformance.transport.dead_letters import DeadLetterCases
from turnline.testing.conformance.transport.deduplication import DeduplicationCases
from turnline.testing.conformance.transport.harness import TransportHarness
from turnline.testing.conformance.transport.leases import LeaseCases
from turnline.testing.conformance.transport.lifecycle import LifecycleCases
from turnline.testing.conformance.transport.ordering import OrderingCases
from turnline.testing.conformance.transport.poison import PoisonCases
from turnline.testing.conformance.transport.sending import SendingCases
from turnline.testing.conformance.transport.settling import SettlingCases
from turnline.testing.conformance.transport.stats import StatsCases
from turnline.transport import Capabilities


class TransportConformance(
    SendingCases,
    OrderingCases,
    LeaseCases,
    SettlingCases,
    DeduplicationCases,
    DeadLetterCases,
    BoundCases,
    PoisonCases,
    ConsumerCases,
    StatsCases,
    LifecycleCases,
    ConcurrencyCases,
):
    """Subclass it in the adapter's `conformance_test.py` and override the `harness` fixture."""

    async def test_every_declared_difference_names_a_case_and_a_reason(
        self, harness: TransportHarness
    ) -> None:
        check_differences(harness.capabilities)


def check_differences(capabilities: Capabilities) -> None:
    """Fail unless every declared difference names a case and says why; for split suites too."""
    for case, reason in capabilities.differences:
        assert hasattr(TransportConformance, case.partition("[")[0]), f"no case is called {case}"
        assert len(reason.split()) >= 3, f"{case}: say why"
