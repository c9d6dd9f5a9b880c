"""Over a real server, in real time: what is sent arrives, once."""

import pytest

from turnline.testing.conformance.transport import TransportHarness
from turnline.testing.conformance.transport.deduplication import DeduplicationCases
from turnline.testing.conformance.transport.sending import SendingCases
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.transport.sqs.harness import SqsHarness


class TestSendingCases(SendingCases):
    """Every case but the declared differences."""

    @pytest.fixture
    def harness(self, server: ElasticMqServer) -> TransportHarness:
        return SqsHarness(server.url)


class TestDeduplicationCases(DeduplicationCases):
    """Every case but the declared differences."""

    @pytest.fixture
    def harness(self, server: ElasticMqServer) -> TransportHarness:
        return SqsHarness(server.url)
