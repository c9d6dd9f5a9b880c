"""Over a real server, in real time: settlements."""

import pytest

from turnline.testing.conformance.transport import TransportHarness
from turnline.testing.conformance.transport.settling import SettlingCases
from turnline.testing.servers.nats import NatsServer
from turnline.transport.nats.harness import NatsHarness


class TestSettlingCases(SettlingCases):
    """Every case, none excepted."""

    @pytest.fixture
    def harness(self, server: NatsServer) -> TransportHarness:
        return NatsHarness(server.url)
