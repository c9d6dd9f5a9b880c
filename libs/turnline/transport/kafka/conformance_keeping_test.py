"""The suite that defines a transport: copies, dead letters, bounds and numbers."""

import pytest

from turnline.testing.conformance.transport import TransportHarness
from turnline.testing.conformance.transport.bounds import BoundCases
from turnline.testing.conformance.transport.dead_letters import DeadLetterCases
from turnline.testing.conformance.transport.deduplication import DeduplicationCases
from turnline.testing.conformance.transport.poison import PoisonCases
from turnline.testing.conformance.transport.stats import StatsCases
from turnline.testing.servers.kafka import KafkaServer
from turnline.transport.kafka.harness import KafkaHarness


class TestKafka(DeduplicationCases, DeadLetterCases, BoundCases, PoisonCases, StatsCases):
    """Every case, none excepted."""

    @pytest.fixture
    def harness(self, server: KafkaServer) -> TransportHarness:
        return KafkaHarness(server.bootstrap)
