"""The shared ConnectionStore meets the suite."""

import pytest

from turnline.store.dynamodb.store_rig import ConnectionRig
from turnline.testing.conformance.stores import ConnectionHarness, ConnectionStoreSuite
from turnline.testing.servers.dynamodb import DynamoDbServer


class TestDynamoDbConnectionStore(ConnectionStoreSuite):
    @pytest.fixture
    def harness(self, server: DynamoDbServer) -> ConnectionHarness:
        return ConnectionRig(server.url)
