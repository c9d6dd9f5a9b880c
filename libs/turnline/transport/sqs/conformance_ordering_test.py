"""Over a real server, in real time: order, and readers that come and go."""

import pytest

from turnline.testing.conformance.transport import TransportHarness
from turnline.testing.conformance.transport.consumers import ConsumerCases
from turnline.testing.conformance.transport.ordering import OrderingCases
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.transport.sqs.harness import SqsHarness


class TestOrderingCases(OrderingCases):
    """Every case but the declared differences."""

    @pytest.fixture
    def harness(self, server: ElasticMqServer) -> TransportHarness:
        return SqsHarness(server.url)


class TestConsumerCases(ConsumerCases):
    """Every case but the declared differences."""

    @pytest.fixture
    def harness(self, server: ElasticMqServer) -> TransportHarness:
        return SqsHarness(server.url)
