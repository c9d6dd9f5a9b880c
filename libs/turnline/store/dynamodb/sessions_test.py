"""The shared SessionStore meets the suite."""

import pytest

from turnline.store.dynamodb.store_rig import SessionRig
from turnline.testing.conformance.stores import SessionHarness, SessionStoreSuite
from turnline.testing.servers.dynamodb import DynamoDbServer


class TestDynamoDbSessionStore(SessionStoreSuite):
    @pytest.fixture
    def harness(self, server: DynamoDbServer) -> SessionHarness:
        return SessionRig(server.url)
