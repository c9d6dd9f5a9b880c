"""The suite that defines a transport: sending, order, load, and entering and leaving."""

import pytest

from turnline.testing.conformance.transport import TransportHarness
from turnline.testing.conformance.transport.concurrency import ConcurrencyCases
from turnline.testing.conformance.transport.lifecycle import LifecycleCases
from turnline.testing.conformance.transport.ordering import OrderingCases
from turnline.testing.conformance.transport.sending import SendingCases
from turnline.testing.servers.kafka import KafkaServer
from turnline.transport.kafka.harness import KafkaHarness


class TestKafka(SendingCases, OrderingCases, LifecycleCases, ConcurrencyCases):
    """Every case, none excepted."""

    @pytest.fixture
    def harness(self, server: KafkaServer) -> TransportHarness:
        return KafkaHarness(server.bootstrap)
