"""Over a real server, in real time: dead letters and the life of a transport."""

import pytest

from turnline.testing.conformance.transport import TransportHarness
from turnline.testing.conformance.transport.dead_letters import DeadLetterCases
from turnline.testing.conformance.transport.lifecycle import LifecycleCases
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.transport.sqs.harness import SqsHarness


class TestDeadLetterCases(DeadLetterCases):
    """Every case but the declared differences."""

    @pytest.fixture
    def harness(self, server: ElasticMqServer) -> TransportHarness:
        return SqsHarness(server.url)


class TestLifecycleCases(LifecycleCases):
    """Every case but the declared differences."""

    @pytest.fixture
    def harness(self, server: ElasticMqServer) -> TransportHarness:
        return SqsHarness(server.url)
