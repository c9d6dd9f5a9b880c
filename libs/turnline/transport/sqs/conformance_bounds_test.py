"""Over a real server, in real time: bounds and what is no envelope."""

import pytest

from turnline.testing.conformance.transport import TransportHarness
from turnline.testing.conformance.transport.bounds import BoundCases
from turnline.testing.conformance.transport.poison import PoisonCases
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.transport.sqs.harness import SqsHarness


class TestBoundCases(BoundCases):
    """Every case but the declared differences."""

    @pytest.fixture
    def harness(self, server: ElasticMqServer) -> TransportHarness:
        return SqsHarness(server.url)


class TestPoisonCases(PoisonCases):
    """Every case but the declared differences."""

    @pytest.fixture
    def harness(self, server: ElasticMqServer) -> TransportHarness:
        return SqsHarness(server.url)
