"""Suites that define the three stores, and what an adapter provides to run them."""

from turnline.testing.conformance.stores.connections import ConnectionStoreSuite
from turnline.testing.conformance.stores.fake_time import FakeStoreTime
from turnline.testing.conformance.stores.harness import (
    ConnectionHarness,
    ConnectionLimits,
    Harness,
    ReplyHarness,
    ReplyLimits,
    SessionHarness,
    SessionLimits,
    StoreTime,
)
from turnline.testing.conformance.stores.responses import ResponseStoreSuite
from turnline.testing.conformance.stores.sessions import SessionStoreSuite

__all__ = [
    "ConnectionHarness",
    "ConnectionLimits",
    "ConnectionStoreSuite",
    "FakeStoreTime",
    "Harness",
    "ReplyHarness",
    "ReplyLimits",
    "ResponseStoreSuite",
    "SessionHarness",
    "SessionLimits",
    "SessionStoreSuite",
    "StoreTime",
]
