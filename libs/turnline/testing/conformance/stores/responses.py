"""The suite that defines a ResponseStore.

Subclass it in a test file of the adapter, override `harness`, and pytest runs every case.
"""

from turnline.testing.conformance.stores.gap_cases import GapCases, RetryCases
from turnline.testing.conformance.stores.reply_cases import AdmissionCases, EndCases
from turnline.testing.conformance.stores.stream_cases import AppendCases, ReaderCases
from turnline.testing.conformance.stores.wait_cases import ExpiryCases, WaitCases


class ResponseStoreSuite(
    AdmissionCases,
    EndCases,
    WaitCases,
    ExpiryCases,
    ReaderCases,
    AppendCases,
    RetryCases,
    GapCases,
):
    """All cases; `harness` is the one thing to provide."""
