"""Over a real server, in real time: leases."""

import pytest

from turnline.testing.conformance.transport import TransportHarness
from turnline.testing.conformance.transport.leases import LeaseCases
from turnline.testing.servers.nats import NatsServer
from turnline.transport.nats.harness import NatsHarness


class TestLeaseCases(LeaseCases):
    """Every case, none excepted."""

    @pytest.fixture
    def harness(self, server: NatsServer) -> TransportHarness:
        return NatsHarness(server.url)
