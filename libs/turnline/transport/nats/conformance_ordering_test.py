"""Over a real server, in real time: order, and readers that come and go."""

import pytest

from turnline.testing.conformance.transport import TransportHarness
from turnline.testing.conformance.transport.consumers import ConsumerCases
from turnline.testing.conformance.transport.ordering import OrderingCases
from turnline.testing.servers.nats import NatsServer
from turnline.transport.nats.harness import NatsHarness


class TestOrderingCases(OrderingCases):
    """Every case, none excepted."""

    @pytest.fixture
    def harness(self, server: NatsServer) -> TransportHarness:
        return NatsHarness(server.url)


class TestConsumerCases(ConsumerCases):
    """Every case, none excepted."""

    @pytest.fixture
    def harness(self, server: NatsServer) -> TransportHarness:
        return NatsHarness(server.url)
