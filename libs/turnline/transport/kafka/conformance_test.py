"""The suite that defines a transport, over a real broker."""

import pytest

from turnline.testing.conformance.transport import TransportConformance, TransportHarness
from turnline.testing.servers.kafka import KafkaServer
from turnline.transport.kafka.harness import KafkaHarness


class TestKafka(TransportConformance):
    """Every case, none excepted."""

    @pytest.fixture
    def harness(self, server: KafkaServer) -> TransportHarness:
        return KafkaHarness(server.bootstrap)
