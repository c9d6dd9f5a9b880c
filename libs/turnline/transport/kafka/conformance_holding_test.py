"""The suite that defines a transport: leases, settlements and readers."""

import pytest

from turnline.testing.conformance.transport import TransportHarness
from turnline.testing.conformance.transport.consumers import ConsumerCases
from turnline.testing.conformance.transport.leases import LeaseCases
from turnline.testing.conformance.transport.settling import SettlingCases
from turnline.testing.servers.kafka import KafkaServer
from turnline.transport.kafka.harness import KafkaHarness


class TestKafka(LeaseCases, SettlingCases, ConsumerCases):
    """Every case, none excepted."""

    @pytest.fixture
    def harness(self, server: KafkaServer) -> TransportHarness:
        return KafkaHarness(server.bootstrap)
