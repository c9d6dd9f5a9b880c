"""The shared SessionStore meets the suite."""

import pytest

from turnline.store.valkey.store_rig import SessionRig
from turnline.testing.conformance.stores import SessionHarness, SessionStoreSuite
from turnline.testing.servers.valkey import ValkeyServer


class TestValkeySessionStore(SessionStoreSuite):
    @pytest.fixture
    def harness(self, server: ValkeyServer) -> SessionHarness:
        return SessionRig(server)
