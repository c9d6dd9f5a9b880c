"""Suites of cases that define the ports: whatever passes is an implementation.

Suites live in plain modules, so pytest is asked here to explain their assertions as it does those
of test files.
"""

import pytest

pytest.register_assert_rewrite(
    "turnline.testing.conformance.bookkeeping",
    "turnline.testing.conformance.stores",
    "turnline.testing.conformance.transport",
)
