"""The shared ResponseStore meets the suite."""

import pytest

from turnline.store.valkey.store_rig import ReplyRig
from turnline.testing.conformance.stores import ReplyHarness, ResponseStoreSuite
from turnline.testing.servers.valkey import ValkeyServer

_DIFFERENCES = {
    "test_finished_replies_give_way_oldest_first": (
        "answers are bounded by their TTL: a count of all would be one more name that every "
        "script touches, on another shard than most"
    ),
}


class TestValkeyResponseStore(ResponseStoreSuite):
    @pytest.fixture
    def harness(self, server: ValkeyServer) -> ReplyHarness:
        return ReplyRig(server, _DIFFERENCES)
