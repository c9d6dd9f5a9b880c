"""Over a real server, in real time: order and random workloads, with receive calls for ten."""

import pytest

from turnline.testing.conformance.transport import TransportHarness, check_differences
from turnline.testing.conformance.transport.concurrency import ConcurrencyCases
from turnline.testing.conformance.transport.ordering import OrderingCases
from turnline.testing.conformance.transport.rig import Side
from turnline.testing.conformance.transport.topic import Topic
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.transport.sqs.harness import SqsHarness


class InBatches(Topic):
    """One queue is enough: the other one is the same."""

    @pytest.fixture
    def harness(self, server: ElasticMqServer) -> TransportHarness:
        return SqsHarness(server.url, batch_size=10)

    @pytest.fixture(params=["input"])
    def side(self, request: pytest.FixtureRequest) -> Side:
        side: Side = request.param
        return side


class TestOrderingCases(InBatches, OrderingCases):
    """Every case but the declared differences."""


class TestConcurrencyCases(InBatches, ConcurrencyCases):
    """Every case but the declared differences."""


def test_every_declared_difference_names_a_case_and_a_reason(server: ElasticMqServer) -> None:
    check_differences(SqsHarness(server.url).capabilities)
