"""The shared ConnectionStore meets the suite."""

import pytest

from turnline.store.valkey.store_rig import ConnectionRig
from turnline.testing.conformance.stores import ConnectionHarness, ConnectionStoreSuite
from turnline.testing.servers.valkey import ValkeyServer


class TestValkeyConnectionStore(ConnectionStoreSuite):
    @pytest.fixture
    def harness(self, server: ValkeyServer) -> ConnectionHarness:
        return ConnectionRig(server)
