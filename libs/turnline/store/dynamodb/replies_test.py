"""The shared ResponseStore meets the suite."""

import pytest

from turnline.store.dynamodb.store_rig import ReplyRig
from turnline.testing.conformance.stores import ReplyHarness, ResponseStoreSuite
from turnline.testing.servers.dynamodb import DynamoDbServer

_DIFFERENCES = {
    "test_finished_replies_give_way_oldest_first": (
        "answers are bounded by their TTL: nobody counts the items of a table"
    ),
}


class TestDynamoDbResponseStore(ResponseStoreSuite):
    @pytest.fixture
    def harness(self, server: DynamoDbServer) -> ReplyHarness:
        return ReplyRig(server.url, _DIFFERENCES)
