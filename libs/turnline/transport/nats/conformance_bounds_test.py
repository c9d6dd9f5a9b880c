"""Over a real server, in real time: bounds and what is no envelope."""

import pytest

from turnline.testing.conformance.transport import TransportHarness
from turnline.testing.conformance.transport.bounds import BoundCases
from turnline.testing.conformance.transport.poison import PoisonCases
from turnline.testing.servers.nats import NatsServer
from turnline.transport.nats.harness import NatsHarness


class TestBoundCases(BoundCases):
    """Every case, none excepted."""

    @pytest.fixture
    def harness(self, server: NatsServer) -> TransportHarness:
        return NatsHarness(server.url)


class TestPoisonCases(PoisonCases):
    """Every case, none excepted."""

    @pytest.fixture
    def harness(self, server: NatsServer) -> TransportHarness:
        return NatsHarness(server.url)
