"""Over a real server, in real time: what a queue says of itself."""

import pytest

from turnline.testing.conformance.transport import TransportHarness
from turnline.testing.conformance.transport.stats import StatsCases
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.transport.sqs.harness import SqsHarness


class TestStatsCases(StatsCases):
    """Every case but the declared differences."""

    @pytest.fixture
    def harness(self, server: ElasticMqServer) -> TransportHarness:
        return SqsHarness(server.url)
