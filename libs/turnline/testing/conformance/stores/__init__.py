"""Suites that define a store; import them from `responses`, `sessions` and `connections`."""

import pytest

# So that a failing case shows its values: pytest rewrites asserts only in test files otherwise.
pytest.register_assert_rewrite(
    *(
        f"{__name__}.{module}"
        for module in (
            "cancel_cases",
            "claim_cases",
            "commit_cases",
            "connections",
            "ledger_model",
            "reply_cases",
            "stream_cases",
        )
    )
)
