"""Over a real server, in real time: random workloads on the input queue."""

import pytest

from turnline.testing.conformance.transport import TransportHarness
from turnline.testing.conformance.transport.concurrency import ConcurrencyCases
from turnline.testing.conformance.transport.rig import Side
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.transport.sqs.harness import SqsHarness


class TestConcurrencyCases(ConcurrencyCases):
    """Every case but the declared differences."""

    @pytest.fixture
    def harness(self, server: ElasticMqServer) -> TransportHarness:
        return SqsHarness(server.url)

    @pytest.fixture(params=["input"])
    def side(self, request: pytest.FixtureRequest) -> Side:
        side: Side = request.param
        return side
