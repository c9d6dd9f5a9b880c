"""The suite that defines a SessionStore.

Subclass it in a test file of the adapter, override `harness`, and pytest runs every case.
"""

from turnline.testing.conformance.stores.cancel_cases import (
    CancelCases,
    CancelNoticeCases,
    CancelRaceCases,
)
from turnline.testing.conformance.stores.claim_cases import ClaimCases, RenewCases
from turnline.testing.conformance.stores.commit_cases import (
    CommitCases,
    CrashCases,
    RefusalCases,
)
from turnline.testing.conformance.stores.kept_cases import AliasCases, BoundCases
from turnline.testing.conformance.stores.ledger_model import ModelCases


class SessionStoreSuite(
    ClaimCases,
    RenewCases,
    CommitCases,
    RefusalCases,
    CrashCases,
    AliasCases,
    BoundCases,
    CancelCases,
    CancelNoticeCases,
    CancelRaceCases,
    ModelCases,
):
    """All cases; `harness` is the one thing to provide."""
