"""The suite that defines a ResponseStore.

Subclass it in a test file of the adapter, override `harness`, and pytest runs every case.
"""

from turnline.testing.conformance.stores.reply_cases import (
    AdmissionCases,
    EndCases,
    ExpiryCases,
    WaitCases,
)
from turnline.testing.conformance.stores.stream_cases import (
    AppendCases,
    GapCases,
    ReaderCases,
    RetryCases,
)


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
