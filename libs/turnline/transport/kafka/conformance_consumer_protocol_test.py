"""The promises under load again, in a group of the newer protocol (`group.protocol=consumer`)."""

import pytest

from turnline.testing.conformance.transport import TransportHarness
from turnline.testing.conformance.transport.concurrency import ConcurrencyCases
from turnline.testing.servers.kafka import KafkaServer
from turnline.transport.kafka.harness import KafkaHarness


class TestConsumerProtocol(ConcurrencyCases):
    """Every case, none excepted."""

    @pytest.fixture
    def harness(self, server: KafkaServer) -> TransportHarness:
        return KafkaHarness(server.bootstrap, {"group.protocol": "consumer"})
