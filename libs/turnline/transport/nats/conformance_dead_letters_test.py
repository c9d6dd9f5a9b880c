"""Over a real server, in real time: dead letters and the life of a transport."""

import pytest

from turnline.testing.conformance.transport import TransportHarness
from turnline.testing.conformance.transport.dead_letters import DeadLetterCases
from turnline.testing.conformance.transport.lifecycle import LifecycleCases
from turnline.testing.servers.nats import NatsServer
from turnline.transport.nats.harness import NatsHarness


class TestDeadLetterCases(DeadLetterCases):
    """Every case, none excepted."""

    @pytest.fixture
    def harness(self, server: NatsServer) -> TransportHarness:
        return NatsHarness(server.url)


class TestLifecycleCases(LifecycleCases):
    """Every case, none excepted."""

    @pytest.fixture
    def harness(self, server: NatsServer) -> TransportHarness:
        return NatsHarness(server.url)
